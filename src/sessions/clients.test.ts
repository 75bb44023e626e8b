import { expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { sessionClients, type ClientKind } from './clients.ts';
import type { Ending } from './state.ts';

function house() {
  const state = { ending: undefined as Ending | undefined, released: 0 };
  const { telemetry, events } = fakeTelemetry();
  const clients = sessionClients({ id: 's', ending: () => state.ending, visited: telemetry.visited, log: silent });
  const join = (kind: ClientKind, receiver: Partial<WebSocketReceiver> = {}, holds = true) => {
    const codes: number[] = [];
    const sink = { close: (code: number) => void codes.push(code) } as unknown as WebSocketSink;
    const use = () => ({ receive() {}, flush() {}, closed() {}, ...receiver });
    const attached = clients.attach(holds ? { release: () => void state.released++ } : undefined, use, kind)(sink);
    return { attached, codes };
  };
  return { clients, state, join, events };
}

test('each client holds the session until it has closed, once', () => {
  const { clients, state, join } = house();
  const [client, viewer] = [join('terminal'), join('viewer')];
  expect([clients.count, clients.viewers]).toEqual([2, 1]);
  expect(clients.byKind).toEqual({ cdp: 0, webdriver: 0, viewer: 1, terminal: 1 });
  clients.close(1012, 'It comes back.');
  expect([client.codes, viewer.codes]).toEqual([[1012], [1012]]);
  expect(state.released).toBe(0);
  viewer.attached.closed();
  viewer.attached.closed();
  expect([clients.count, clients.viewers, state.released]).toEqual([1, 0, 1]);
});

test('a message that breaks something ends its client only, and its hold is given back all the same', () => {
  const { clients, state, join } = house();
  const broken = () => {
    throw new Error('broken');
  };
  const bad = join('terminal', { receive: broken, flush: broken, closed: broken });
  const good = join('terminal');
  bad.attached.receive(Buffer.from('x'), false);
  bad.attached.flush();
  expect([bad.codes, good.codes]).toEqual([[1011, 1011], []]);
  bad.attached.closed();
  expect([clients.count, state.released]).toEqual([1, 1]);
});

test('a client that comes while the session ends is sent away', () => {
  const { state, join } = house();
  state.ending = 'deleted';
  expect(join('terminal').codes).toEqual([1001]);
});

test('a client from inside the session is counted, and does not hold it', () => {
  const { clients, state, join } = house();
  const { attached } = join('cdp', {}, false);
  expect([clients.count, clients.holding, clients.byKind.cdp]).toEqual([1, 0, 1]);
  attached.closed();
  expect([clients.count, clients.holding, state.released]).toEqual([0, 0, 0]);
});
