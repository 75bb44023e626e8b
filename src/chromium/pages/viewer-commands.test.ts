import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Shown, Viewer } from './viewer.ts';
import { viewerSteering } from './viewer-commands.ts';

test('the history of a page that changes it constantly is read by one request at a time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const listeners = new Map<string, (tab: Shown, params: object) => unknown>();
  const asked: ((history?: object) => void)[] = [];
  const sent: object[] = [];
  const page = { loading: true, canGoBack: false, canGoForward: false };
  const tab = { id: 'T', sessionId: 'S', page } as unknown as Shown;
  const viewer = {
    shown: tab,
    sink: { bufferedAmount: 0 },
    onShown: (event: string, _is: unknown, listener: (tab: Shown, params: object) => unknown) =>
      listeners.set(event, listener),
    ask: (_tab: Shown, _is: unknown, method: string) => {
      expect(method).toBe('Page.getNavigationHistory');
      return new Promise((resolve) => asked.push(resolve));
    },
    send: () => Promise.resolve(),
    tell: (message: object) => void sent.push(message),
    later: (ms: number, work: () => void) => setTimeout(work, ms),
  };
  viewerSteering(viewer as unknown as Viewer, { failureOf: () => undefined });
  const changed = () => listeners.get('Page.navigatedWithinDocument')!(tab, {});

  for (let times = 0; times < 100; times++) void changed();
  expect(asked).toHaveLength(1);
  asked[0]!({ currentIndex: 1, entries: [{ id: 1 }, { id: 2 }] });
  await turn();
  expect(sent).toEqual([{ type: 'page', loading: true, canGoBack: true, canGoForward: false }]);
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toHaveLength(2); // what changed while it was asked
  void listeners.get('Page.frameStoppedLoading')!(tab, { frameId: 'T' });
  asked[1]!(); // no answer: the viewer still hears that the page has loaded
  await turn();
  expect(sent.at(-1)).toEqual({ type: 'page', loading: false, canGoBack: true, canGoForward: false });
});
