import type { Check } from '../../lib/shape.ts';
import { storable } from '../../lib/text.ts';
import { webFile } from '../../lib/web-files.ts';
import type { PageCommands } from './attached-pages.ts';
import type { FrameWorld } from './frames.ts';
import { isEvaluated } from '../cdp/shapes.ts';
import { returned, type FormsCalls } from './page-calls.ts';
import { FormsError } from './types.ts';

type Name = keyof FormsCalls;
type Returned<N extends Name> = ReturnType<FormsCalls[N]>;
/** The functions that are called on the element of a frame. */
type OnFrame = 'framePlace' | 'frameShift';
type AfterFirst<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

let script: string | undefined;

/** An expression with the functions of web/page.ts, which it installs in a document that does not have them yet. */
function installed(): string {
  script ??= webFile('chromium/forms/web/page.js').toString();
  return `(globalThis.corralForms ?? ${script}.calls)`;
}

/** The same, without an installation. Throws in a document that does not have them. */
const present = 'globalThis.corralForms';

/** Calls of the forms' script in a frame. Arguments are numbers, or JSON that the service made. */
export function worldCalls(commands: PageCommands) {
  function valueOf<T>(is: Check<T>, answer: { result: Record<string, unknown>; exceptionDetails?: unknown }): T {
    if (answer.exceptionDetails !== undefined) throw new FormsError('stale', 'The page could not be read.');
    const value = answer.result['value'];
    if (!is(value)) throw new FormsError('stale', 'The page was read as something else than a page.');
    return withStorableTexts(value);
  }

  async function evaluate<T>(frame: FrameWorld, ms: number, is: Check<T>, expression: string): Promise<T> {
    const { sessionId, contextId } = frame;
    const params = { expression, contextId, returnByValue: true };
    return valueOf(is, await commands.ask(ms, sessionId, isEvaluated, 'Runtime.evaluate', params));
  }

  return {
    patience: commands.patience,

    /** Installs the script in a document that does not have it yet. */
    call: <N extends Name>(frame: FrameWorld, ms: number, name: N, ...args: Parameters<FormsCalls[N]>) =>
      evaluate<Returned<N>>(frame, ms, returned[name], `${installed()}.${callOf(name, args)}`),

    /** For a document that has been read: the script is not sent again with each key. */
    callAgain: <N extends Name>(frame: FrameWorld, ms: number, name: N, ...args: Parameters<FormsCalls[N]>) =>
      evaluate<Returned<N>>(frame, ms, returned[name], `${present}.${callOf(name, args)}`),

    /** The origin of a frame's document: `null` when it is opaque. No name in a page hides it, since a global has it as its own. */
    originOf: <T>(frame: FrameWorld, ms: number, is: Check<T>): Promise<T> =>
      evaluate(frame, ms, is, 'globalThis.origin'),

    /** The same as `callAgain` with arguments that are no part of a script: clients of the session can read scripts. */
    async callWith<N extends Name>(
      { contextId, sessionId }: FrameWorld,
      ms: number,
      name: N,
      ...args: Parameters<FormsCalls[N]>
    ): Promise<Returned<N>> {
      const answer = await commands.ask(ms, sessionId, isEvaluated, 'Runtime.callFunctionOn', {
        functionDeclaration: `function (...args) { return ${present}.${name}(...args) }`,
        executionContextId: contextId,
        arguments: args.map((value) => ({ value })),
        returnByValue: true,
      });
      return valueOf<Returned<N>>(returned[name], answer);
    },

    /** Calls a function on the element that shows a frame. */
    async onFrame<N extends OnFrame>(
      { objectId, sessionId }: { objectId: string; sessionId: string },
      ms: number,
      name: N,
      ...args: AfterFirst<Parameters<FormsCalls[N]>>
    ): Promise<Returned<N>> {
      const answer = await commands.ask(ms, sessionId, isEvaluated, 'Runtime.callFunctionOn', {
        functionDeclaration: `function (...args) { return ${installed()}.${name}(this, ...args) }`,
        objectId,
        arguments: args.map((value) => ({ value })),
        returnByValue: true,
      });
      return valueOf<Returned<N>>(returned[name], answer);
    },
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

const callOf = (name: Name, args: readonly unknown[]) =>
  `${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`;

export type WorldCalls = ReturnType<typeof worldCalls>;
