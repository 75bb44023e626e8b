import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { liveViewHeartbeat } from './beat.ts';
import { watchHeartbeat } from './web/heartbeat.ts';

/** A connection of a live view, on which messages arrive. `said` has the messages to its page, with their milliseconds. */
function connection() {
  const socket = new EventTarget();
  const left = new AbortController();
  const said: string[] = [];
  const passedOn: unknown[] = [];
  const begun = Date.now();
  const say = (word: string) => () => void said.push(`${word} at ${Date.now() - begun}`);
  watchHeartbeat(socket, left.signal, { stalled: say('stalled'), resumed: say('resumed'), dead: say('dead') });
  socket.addEventListener('message', (event) => passedOn.push((event as MessageEvent).data));
  return {
    said,
    passedOn,
    arrive: (data: unknown) => socket.dispatchEvent(new MessageEvent('message', { data })),
    leave: () => left.abort(),
  };
}

describe('a page of the live view', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('shows a connection that is silent within 5 s, and gives it up after 15 s', () => {
    const { said } = connection();
    vi.advanceTimersByTime(3999);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(said).toEqual(['stalled at 4000', 'dead at 15000']);
  });

  it('shows it also if the last message came between two ticks', () => {
    const { said, arrive } = connection();
    vi.advanceTimersByTime(10);
    arrive('{"type":"tabs"}');
    vi.advanceTimersByTime(5000);
    expect(said).toEqual(['stalled at 4000']);
  });

  it('takes the service’s heartbeat for a sign of life, and does not pass it on', () => {
    const { said, passedOn, arrive, leave } = connection();
    for (let beats = 0; beats < 60; beats++) {
      vi.advanceTimersByTime(liveViewHeartbeat.everyMs);
      arrive(liveViewHeartbeat.text);
    }
    expect(said).toEqual([]);
    expect(passedOn).toEqual([]);
    leave();
  });

  it.each([liveViewHeartbeat.text, '{"type":"tabs"}', new ArrayBuffer(1)])('continues when %j arrives', (message) => {
    const { said, arrive } = connection();
    vi.advanceTimersByTime(14_500);
    arrive(message);
    arrive(message);
    expect(said).toEqual(['stalled at 4000', 'resumed at 14500']);
    vi.advanceTimersByTime(4500); // it is silent again
    expect(said.slice(2)).toEqual(['stalled at 18000']);
  });

  it('passes everything else on, in its order', () => {
    const { passedOn, arrive } = connection();
    const messages = ['{"type":"tabs"}', '{"type":"alive","more":1}', new ArrayBuffer(1), 'alive'];
    for (const message of messages) arrive(message);
    expect(passedOn).toEqual(messages);
  });

  it('says nothing more of a connection that it has left', () => {
    const { said, leave, arrive } = connection();
    vi.advanceTimersByTime(5000);
    leave();
    arrive('late');
    vi.advanceTimersByTime(60_000);
    expect(said).toEqual(['stalled at 4000']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
