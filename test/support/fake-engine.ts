import type { Engine } from '../../src/chromium/engine.ts';
import { memory } from '../../src/lib/byte-budget.ts';

export type FakeEngine = ReturnType<typeof fakeEngine>;

/** A browser that is only there: it can be frozen, be closed and crash, and notes what is done to it. */
export function fakeEngine() {
  const done: string[] = [];
  const mux = { isClosed: false };
  let exit!: () => void;
  const exited = new Promise<void>((resolve) => (exit = resolve));
  const gone = () => {
    mux.isClosed = true;
    exit();
  };
  const note =
    (what: string) =>
    async (...args: unknown[]) =>
      void done.push([what, ...args].join(' '));
  const engine = {
    mux,
    memory: memory.group(),
    browser: {
      kind: 'chromium',
      exited,
      freeze: note('freeze'),
      thaw: note('thaw'),
      logTail: () => ['the last line'],
    },
    gateway: { setProxy: (proxy: { url?: string } | undefined) => void done.push(`proxy ${proxy?.url ?? 'none'}`) },
    control: () => ({ send: note('send') }),
    open: note('open'),
    setViewport: async ({ width, height }: { width: number; height: number }) =>
      void done.push(`viewport ${width}x${height}`),
    async close() {
      done.push('close');
      gone();
    },
  };
  return { engine: engine as unknown as Engine, done, crash: gone };
}
