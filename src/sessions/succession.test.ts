import { expect, test } from 'vitest';
import { fakeEngine, proxyAt } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { silent } from '../lib/log.ts';
import type { Ending } from './state.ts';
import { sessionSuccession } from './succession.ts';

function house() {
  const browsers = [fakeEngine()];
  const stopping = new AbortController();
  const { telemetry, events } = fakeTelemetry();
  const state = { ending: undefined as Ending | undefined, mayReplace: true, closed: [] as number[], lost: '' };
  let asked!: () => void;
  const lost = new Promise<void>((resolve) => (asked = resolve));
  const started = async () => {
    const next = fakeEngine();
    browsers.push(next);
    return next.engine;
  };
  const succession = sessionSuccession({
    projectId: 'proj',
    id: 's',
    first: browsers[0]!.engine,
    proxy: undefined,
    relaunch: started,
    ending: () => state.ending,
    stopping: stopping.signal,
    mayReplace: () => state.mayReplace,
    telemetry,
    closeClients: (code) => void state.closed.push(code),
    onCrash() {},
    onNext() {},
    onLost(detail) {
      state.lost = detail;
      asked();
    },
    log: silent,
  });
  return { ...succession, browsers, state, lost, started, events };
}

test('a browser that crashes is replaced, and waited for; the fourth crash in five minutes is the last', async () => {
  const { answering, whenGone, browsers, state, lost, events } = house();
  for (let n = 0; n < 3; n++) {
    expect(whenGone().code).toBe(1012);
    browsers[n]!.crash();
    expect(await answering()).toBe(browsers[n + 1]!.engine);
  }
  expect(whenGone().code).toBe(1011);
  browsers[3]!.crash();
  await lost;
  expect(state.lost).toMatch(/crashed 4 times in five minutes.*the last line/);
  expect(browsers).toHaveLength(4);
  expect(state.closed).toEqual([1012, 1012, 1012, 1011]);
  expect(events.map(({ type, data }) => `${type} ${String(data?.['phase'])}`)).toEqual([
    ...Array<string>(4).fill('service_crashed running'),
    'service_crashed gave_up',
  ]);
});

test('a browser on a shelf is not replaced', async () => {
  const { browsers, state, lost } = house();
  state.mayReplace = false;
  browsers[0]!.crash();
  await lost;
  expect(browsers).toHaveLength(1);
});

test('a browser that is handed over is closed in order, and its clients hear why', async () => {
  const { handOver, answering, browsers, state, started } = house();
  await handOver(browsers[0]!.engine, started, 'With a profile.');
  expect(browsers[0]!.done).toContain('close');
  expect(state.closed).toEqual([1012]);
  expect(await answering()).toBe(browsers[1]!.engine);
});

test('the caller gets an error if the successor does not start, or if the session ends', async () => {
  const failed = house();
  const no = () => Promise.reject(new Error('It did not start.'));
  await expect(failed.handOver(failed.browsers[0]!.engine, no, '')).rejects.toThrow('It did not start.');
  await failed.lost;

  const ended = house();
  ended.state.ending = 'deleted';
  await expect(ended.handOver(ended.browsers[0]!.engine, ended.started, '')).rejects.toMatchObject({
    reason: 'deleted',
  });
  expect(ended.state.lost).toBe('');
  await expect(ended.answering()).rejects.toMatchObject({ reason: 'deleted' });
});

test('a proxy that is swapped while the next browser starts is the one it gets', async () => {
  const { handOver, setProxy, browsers, started } = house();
  let setting: Promise<void> | undefined;
  const swapping = () => {
    setting = setProxy(proxyAt('second'));
    return started();
  };
  await setProxy(proxyAt('first'));
  await setProxy(proxyAt('first')); // the same again drops no connection
  await handOver(browsers[0]!.engine, swapping, '');
  await setting;
  expect(browsers[0]!.done.filter((what) => what.startsWith('proxy'))).toEqual(['proxy first']);
  expect(new Set(browsers[1]!.done)).toEqual(new Set(['proxy second']));
});
