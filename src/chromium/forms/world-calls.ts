import type { Check } from '../../lib/shape.ts';
import { storable } from '../../lib/text.ts';
import type { PageCommands } from './attached-pages.ts';
import type { FrameWorld } from './frames.ts';
import { isEvaluated } from '../cdp/shapes.ts';
import { returned, type FormsCalls } from './page-calls.ts';
import { FormsError } from './types.ts';

type Name = keyof FormsCalls;
type Returned<N extends Name> = ReturnType<FormsCalls[N]>;
/** The functions that are called on the element of a frame. */
type OnFrame = 'framePlace' | 'frameShift';
/** An object of a document. */
interface InBrowser {
  objectId: string;
  sessionId: string;
}
type AfterFirst<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

/** Calls of the forms' script in a frame. Arguments are no part of a script: clients of the session can read scripts. */
export function worldCalls(commands: PageCommands) {
  async function run<T>(
    { objectId, sessionId }: InBrowser,
    ms: number,
    is: Check<T>,
    functionDeclaration: string,
    args: readonly unknown[] = [],
  ): Promise<T> {
    const { result, exceptionDetails } = await commands.ask(ms, sessionId, isEvaluated, 'Runtime.callFunctionOn', {
      functionDeclaration,
      objectId,
      arguments: args.map((value) => ({ value })),
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new FormsError('stale', 'The page could not be read.');
    const value = result['value'];
    if (!is(value)) throw new FormsError('stale', 'The page was read as something else than a page.');
    return withStorableTexts(value);
  }
  const scriptOf = ({ script: objectId, sessionId }: FrameWorld): InBrowser => ({ objectId, sessionId });

  return {
    patience: commands.patience,

    call: <N extends Name>(frame: FrameWorld, ms: number, name: N, ...args: Parameters<FormsCalls[N]>) =>
      run<Returned<N>>(
        scriptOf(frame),
        ms,
        returned[name],
        `function (...args) { return this.${name}(...args) }`,
        args,
      ),

    /** The origin of a frame's document: `null` when it is opaque. No name in a page hides it, since a global has it as its own. */
    originOf: <T>(frame: FrameWorld, ms: number, is: Check<T>): Promise<T> =>
      run(scriptOf(frame), ms, is, 'function () { return globalThis.origin }'),

    /** Calls a function on the element that shows a frame. */
    onFrame: <N extends OnFrame>(
      element: InBrowser,
      ms: number,
      name: N,
      ...args: AfterFirst<Parameters<FormsCalls[N]>>
    ) =>
      run<Returned<N>>(
        element,
        ms,
        returned[name],
        `function (...args) { return globalThis.corralForms.${name}(this, ...args) }`,
        args,
      ),
  };
}

/** Replaces what the database does not store in all texts of a value, in place: nothing else has the value yet. */
function withStorableTexts<T>(value: T): T {
  if (typeof value === 'string') return storable(value) as T;
  if (typeof value !== 'object' || value === null) return value;
  const parts = value as Record<string, unknown>;
  for (const name of Object.keys(parts)) parts[name] = withStorableTexts(parts[name]);
  return value;
}

export type WorldCalls = ReturnType<typeof worldCalls>;
