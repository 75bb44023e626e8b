import type { Browser } from '../../src/chromium/browser/launch.ts';
import type { Mux } from '../../src/chromium/cdp/mux.ts';
import type { LocalClient } from '../../src/chromium/cdp/local-client.ts';
import type { Gateway } from '../../src/chromium/egress/gateway.ts';
import type { Proxy as WayOut } from '../../src/chromium/egress/proxy.ts';
import type { Engine } from '../../src/chromium/engine.ts';
import type { Exit } from '../../src/chromium/sandbox/sandboxed-process.ts';
import { memory } from '../../src/lib/byte-budget.ts';

export type FakeEngine = ReturnType<typeof fakeEngine>;

/** A fake browser that can be frozen, closed and crashed, and records the calls. */
export function fakeEngine() {
  const done: string[] = [];
  const closed = { isClosed: false };
  let exit!: (how: Exit) => void;
  const exited = new Promise<Exit>((resolve) => (exit = resolve));
  const crash = () => {
    closed.isClosed = true;
    exit({ code: null, signal: 'SIGKILL' });
  };
  const note =
    (what: string) =>
    async (...args: unknown[]) =>
      void done.push([what, ...args].join(' '));
  const engine: Engine = {
    mux: only<Mux>('mux', closed),
    memory: memory.group(),
    browser: only<Browser>('browser', {
      kind: 'headless',
      connectDisplay: undefined,
      displayLog: undefined,
      exited,
      freeze: note('freeze'),
      thaw: note('thaw'),
      logTail: Object.assign(() => ['the last line'], { say: () => {}, follow: () => () => {} }),
    }),
    gateway: only<Gateway>('gateway', { setProxy: (proxy) => void done.push(`proxy ${proxy?.host ?? 'none'}`) }),
    guest: only('guest'),
    hidden: only('hidden pages'),
    casts: only('casts'),
    computer: only('computer'),
    control: () =>
      only<LocalClient>('control', {
        async send(...command: unknown[]) {
          done.push(['send', ...command].join(' '));
          return {};
        },
      }),
    open: note('open'),
    setViewport: async ({ width, height }) => void done.push(`viewport ${width}x${height}`),
    async loadExtension(name) {
      done.push(`load ${name}`);
      return `id of ${name}`;
    },
    unloadExtension: note('unload'),
    frontPage: async () => undefined,
    thumbnail: async () => undefined,
    state: async () => ({ cookies: [], urls: [] }),
    resume: note('resume'),
    async close() {
      done.push('close');
      crash();
    },
  };
  return { engine, done, crash };
}

export const proxyAt = (host: string): WayOut => ({ protocol: 'http', host, port: 3128, bypassHosts: [] });

/** A part of the fake with these members. The use of any other member fails. */
function only<T extends object>(part: string, members: Partial<T> = {}): T {
  return new Proxy(members as T, {
    get(target, name, receiver): unknown {
      if (!(name in target)) throw new Error(`The fake engine’s ${part} has no '${String(name)}'.`);
      return Reflect.get(target, name, receiver);
    },
  });
}
