import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { RawClient } from '../support/mux-server.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

const MIB = 2 ** 20;
const asParam = (value: string) => `"method":"A.b","params":{"x":${value}}`;
/** What a message of so many bytes has besides its id, so that it takes long to read. */
const worst: Record<string, [bytes: number, make: (bytes: number) => string]> = {
  numbers: [8 * MIB, (bytes) => asParam(`[${'0,'.repeat(bytes / 2)}0]`)],
  'numbers with exponents': [2 * MIB, (bytes) => asParam(`[${'1e5,'.repeat(bytes / 4)}0]`)],
  'empty lists': [8 * MIB, (bytes) => asParam(`[${'[],'.repeat(bytes / 3)}0]`)],
  objects: [8 * MIB, (bytes) => asParam(`[${'{"a":1},'.repeat(bytes / 8)}0]`)],
  'escaped texts': [8 * MIB, (bytes) => asParam(`[${'"\\n",'.repeat(bytes / 5)}0]`)],
  escapes: [20 * MIB, (bytes) => asParam(`"${'\\n'.repeat(bytes / 2)}"`)],
  'lines without a quote': [MIB, (bytes) => asParam(`"${`${'x'.repeat(60)}\\n`.repeat(bytes / 62)}"`)],
  blanks: [20 * MIB, (bytes) => asParam(`[${`${' '.repeat(60_000)}0,`.repeat(bytes / 60_002)}0]`)],
  'a method of control characters': [4 * MIB, (bytes) => `"method":"\\n${'\u0001'.repeat(bytes)}"`],
  'unknown names': [
    4.5 * MIB,
    (bytes) => `"method":"A.b",${Array.from({ length: bytes / 11 }, (_, at) => `"k${100_000 + at}":0`).join()}`,
  ],
  'downloads that are a list': [
    3.9 * MIB,
    (bytes) => `"method":"Browser.setDownloadBehavior","params":{"x":[${'{},'.repeat(bytes / 3)}0]}`,
  ],
  'a path that goes up and down': [
    250_000,
    (bytes) =>
      `"method":"Browser.setDownloadBehavior","params":{"behavior":"allow","downloadPath":"/${'x'.repeat(bytes / 2)}${'/b/..'.repeat(bytes / 10)}"}`,
  ],
};

describe('a message over CDP that takes long to read does not stop the service', { timeout: 300_000 }, () => {
  let service: Awaited<ReturnType<typeof measuredService>>;
  let client: RawClient;
  beforeAll(async () => {
    service = await measuredService();
    const { body } = await service.call('POST', '/browsers', { headless: true, timeout_seconds: 600 });
    client = await RawClient.open(body.cdp_ws_url);
  });
  afterAll(async () => {
    client?.socket.close();
    await service?.close();
  });

  test.each(Object.entries(worst))('%s', async (_, [bytes, make]) => {
    const message = Buffer.from(`{"id":1000000,${make(bytes)}}`);
    const stop = await service.longestStop(async () =>
      expect(await client.next(message)).toMatchObject({ id: 1_000_000, error: { code: expect.any(Number) } }),
    );
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('a number of 50 MiB is refused before it is read whole', async () => {
    const message = Buffer.from(`{"id":1000000,${asParam('1'.repeat(50 * MIB))}}`);
    const stop = await service.longestStop(async () =>
      expect(await client.next(message)).toMatchObject({ error: { code: -32700 } }),
    );
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('later messages are handled after it, and an array of a million numbers arrives', async () => {
    const { sessionId } = await client.page();
    const value = Array.from({ length: 1_000_000 }, (_, at) => at);
    const { result } = await client.result<{ result: { objectId: string } }>(
      'Runtime.evaluate',
      { expression: 'globalThis' },
      sessionId,
    );
    const sum = client.result<{ result: { value: number } }>(
      'Runtime.callFunctionOn',
      {
        objectId: result.objectId,
        functionDeclaration: '(list) => globalThis.sum = list.reduce((a, b) => a + b, 0)',
        arguments: [{ value }],
        returnByValue: true,
      },
      sessionId,
    );
    const after = client.evaluate('globalThis.sum', sessionId);
    expect((await sum).result.value).toBe(499_999_500_000);
    expect(await after).toBe(499_999_500_000);
  });
});
