import type { Readable, Writable } from 'node:stream';

interface Reply {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  sessionId?: string;
  // The type depends on the command; each test states it where it reads the result.
  // oxlint-disable-next-line typescript/no-explicit-any
  result?: any;
  error?: { message: string };
}

/** The smallest CDP client there is, for tests of what lies below the multiplexer. */
export function pipeClient({ toBrowser, fromBrowser }: { toBrowser: Writable; fromBrowser: Readable }) {
  const waiting = new Map<number, { resolve: (result: Reply['result']) => void; reject: (error: Error) => void }>();
  let lastId = 100;
  let unread = Buffer.alloc(0);

  fromBrowser.on('data', (part: Buffer) => {
    unread = Buffer.concat([unread, part]);
    for (let end = unread.indexOf(0); end !== -1; end = unread.indexOf(0)) {
      const reply: Reply = JSON.parse(unread.subarray(0, end).toString());
      unread = unread.subarray(end + 1);
      const caller = reply.id === undefined ? undefined : waiting.get(reply.id);
      if (reply.id !== undefined) waiting.delete(reply.id);
      if (reply.error) caller?.reject(new Error(reply.error.message));
      else caller?.resolve(reply.result);
    }
  });
  fromBrowser.on('close', () => {
    for (const caller of waiting.values()) caller.reject(new Error('the pipe closed'));
    waiting.clear();
  });

  function send(method: string, params: object = {}, sessionId?: string): Promise<Reply['result']> {
    const id = ++lastId;
    toBrowser.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  return {
    send,

    /** The pages there are. */
    async pages(): Promise<{ targetId: string; url: string }[]> {
      const { targetInfos } = await send('Target.getTargets');
      return targetInfos.filter(({ type }: { type: string }) => type === 'page');
    },

    /** Attaches to the first page; `evaluate` awaits promises and returns values. */
    async page() {
      const [first] = await this.pages();
      const { sessionId } = await send('Target.attachToTarget', { targetId: first!.targetId, flatten: true });
      const evaluate = async (expression: string): Promise<unknown> => {
        const { result, exceptionDetails } = await send(
          'Runtime.evaluate',
          { expression, awaitPromise: true, returnByValue: true },
          sessionId,
        );
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
      };
      return {
        evaluate,
        send: (method: string, params: object = {}) => send(method, params, sessionId),
        /** Navigates and waits until the document is there. */
        async goto(url: string) {
          await send('Page.navigate', { url }, sessionId);
          for (;;) {
            const ready = await evaluate(`document.readyState === 'complete' && location.href !== 'about:blank'`).catch(
              () => false,
            );
            if (ready === true) return;
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
        },
      };
    },
  };
}
