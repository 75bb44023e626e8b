import { expect, test } from 'vitest';
import { socketPlaces } from './socket-places.ts';

const none = { cdp: 0, webdriver: 0, viewer: 0, terminal: 0 };

test('handshakes that wait count as websockets, for their own session', () => {
  const places = socketPlaces(3);
  const session = { clientCount: 1, sight: { uses: none } };
  const arrived = [places.take(session, 'cdp'), places.take(session, 'viewer')];
  expect(() => places.take(session, 'cdp')).toThrow(expect.objectContaining({ code: 'too_many_connections' }));
  places.take({ clientCount: 0, sight: { uses: none } }, 'cdp')();
  session.clientCount++; // the first is open
  arrived[0]!();
  expect(() => places.take(session, 'cdp')).toThrow('3 open websockets');
  arrived[1]!(); // the second failed
  places.take(session, 'cdp')();
});

test('a kind of websocket has a bound of its own', () => {
  const places = socketPlaces(5, { webdriver: 2 });
  const session = { clientCount: 1, sight: { uses: { ...none, webdriver: 1 } } };
  const arrived = places.take(session, 'webdriver');
  expect(() => places.take(session, 'webdriver')).toThrow('2 open websockets of the kind webdriver');
  places.take(session, 'cdp')();
  arrived();
  places.take(session, 'webdriver')();
});
