import { afterAll, beforeAll, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';

let service: Awaited<ReturnType<typeof measuredService>>;
beforeAll(async () => {
  service = await measuredService();
});
afterAll(() => service?.close());

/** JSON of about this many bytes that takes long to parse. */
const worst = {
  'many empty objects': (bytes: number) => `[${'{},'.repeat(bytes / 3)}{}]`,
  'many names': (bytes: number) => {
    let names = '"a":0';
    for (let at = 0; names.length < bytes; at++) names += `,"k${at.toString(36)}":0`;
    return `{${names}}`;
  },
  'deep nesting': (bytes: number) => `{"tags":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`,
  'many escapes': (bytes: number) => `{"name":"${'\\n'.repeat(bytes / 2)}"}`,
  'many letters of two bytes': (bytes: number) => `{"name":"${'ж'.repeat(bytes / 2)}"}`,
};

test.each(Object.entries(worst))('a body of %s does not stop the service', async (_shape, make) => {
  const body = make(5.9 * 2 ** 20);
  const stop = await service.longestStop(async () => {
    const { status } = await service.call('POST', '/browsers', body).catch(() => ({ status: 413 })); // it may be cut off
    expect([400, 413]).toContain(status);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('a small body with as many names as it can have does not stop the service', async () => {
  const body = worst['many names'](64 * 1024 - 20);
  const stop = await service.longestStop(() => service.call('POST', '/profiles', body));
  expect(stop).toBeLessThan(mostStopMs);
});
