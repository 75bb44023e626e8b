import { expect, test } from 'vitest';
import { socketPlaces } from './socket-places.ts';

test('handshakes that wait count as websockets, for their own session', () => {
  const places = socketPlaces(3);
  const session = { clientCount: 1 };
  const arrived = [places.take(session), places.take(session)];
  expect(() => places.take(session)).toThrow(expect.objectContaining({ code: 'too_many_connections' }));
  places.take({ clientCount: 0 })();
  session.clientCount++; // the first is open
  arrived[0]!();
  expect(() => places.take(session)).toThrow('3 open websockets');
  arrived[1]!(); // the second failed
  places.take(session)();
});
