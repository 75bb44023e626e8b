import type { Check } from '../../lib/shape.ts';
import type { PageCommands } from './attached-pages.ts';
import type { FrameWorld } from './frames.ts';
import { isEvaluated } from '../cdp/shapes.ts';
import { inPage, inReadPage } from './page-script.ts';
import { FormsError } from './types.ts';

/** Calls of the forms' script in a frame. Arguments are numbers, or JSON that the service made. */
export function worldCalls(commands: PageCommands) {
  function valueOf<T>(is: Check<T>, answer: { result: Record<string, unknown>; exceptionDetails?: unknown }): T {
    if (answer.exceptionDetails !== undefined) throw new FormsError('stale', 'The page could not be read.');
    const value = answer.result['value'];
    if (!is(value)) throw new FormsError('stale', 'The page was read as something else than a page.');
    return value;
  }

  async function evaluate<T>(frame: FrameWorld, ms: number, is: Check<T>, expression: string): Promise<T> {
    const { sessionId, contextId } = frame;
    const params = { expression, contextId, returnByValue: true };
    return valueOf(is, await commands.ask(ms, sessionId, isEvaluated, 'Runtime.evaluate', params));
  }

  return {
    patience: commands.patience,

    /** Installs the script in a document that does not have it yet. */
    call: <T>(frame: FrameWorld, ms: number, is: Check<T>, name: string, ...args: unknown[]): Promise<T> =>
      evaluate(frame, ms, is, inPage(callOf(name, args))),

    /** For a document that has been read: the script is not sent again with each key. */
    callAgain: <T>(frame: FrameWorld, ms: number, is: Check<T>, name: string, ...args: unknown[]): Promise<T> =>
      evaluate(frame, ms, is, inReadPage(callOf(name, args))),

    /** The origin of a frame's document: `null` when it is opaque. No name in a page hides it, since a global has it as its own. */
    originOf: <T>(frame: FrameWorld, ms: number, is: Check<T>): Promise<T> =>
      evaluate(frame, ms, is, 'globalThis.origin'),

    /** The same as `callAgain` with arguments that are no part of a script: clients of the session can read scripts. */
    async callWith<T>(
      { contextId, sessionId }: FrameWorld,
      ms: number,
      is: Check<T>,
      name: string,
      ...args: (number | string)[]
    ): Promise<T> {
      const answer = await commands.ask(ms, sessionId, isEvaluated, 'Runtime.callFunctionOn', {
        functionDeclaration: `function (...args) { return ${inReadPage(name)}(...args) }`,
        executionContextId: contextId,
        arguments: args.map((value) => ({ value })),
        returnByValue: true,
      });
      return valueOf(is, answer);
    },

    /** Calls a function of JavaScript on an element. */
    async on<T>(
      { objectId, sessionId }: { objectId: string; sessionId: string },
      ms: number,
      is: Check<T>,
      body: string,
      ...args: number[]
    ): Promise<T> {
      const answer = await commands.ask(ms, sessionId, isEvaluated, 'Runtime.callFunctionOn', {
        functionDeclaration: body,
        objectId,
        arguments: args.map((value) => ({ value })),
        returnByValue: true,
      });
      return valueOf(is, answer);
    },
  };
}

const callOf = (name: string, args: unknown[]) => `${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`;

export type WorldCalls = ReturnType<typeof worldCalls>;
