import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

let service: Awaited<ReturnType<typeof measuredService>>;
let id: string;
beforeAll(async () => {
  service = await measuredService();
  const { body } = await service.call('POST', '/browsers', { headless: true, timeout_seconds: 600 });
  id = body.session_id;
  // Each line is empty; each byte of the other file takes six characters in JSON.
  await sh(
    'head -c 2000000 /dev/zero | tr "\\0" "\\n" > /tmp/lines; head -c 5900000 /dev/zero | tr "\\0" "\\001" > /tmp/control',
  );
});
afterAll(async () => await service?.close());

const sh = (script: string) =>
  service.call('POST', `/browsers/${id}/process/exec`, { command: 'sh', args: ['-c', script] });

/** The calls of tools of one request; their results. */
async function tools(...calls: [name: string, args: object][]) {
  const messages = calls.map(([name, args], at) => ({
    jsonrpc: '2.0',
    id: at,
    method: 'tools/call',
    params: { name, arguments: { session_id: id, ...args } },
  }));
  const accept = { accept: 'application/json, text/event-stream' };
  const { status, text, body } = await service.call('POST', '/mcp', messages, accept);
  expect(status, text).toBe(200);
  return ([body].flat() as { result: { isError?: boolean; content: { text: string }[] } }[]).map(
    ({ result }) => result,
  );
}

test('a hundred selectors for the same large element do not stop the service', { timeout: 300_000 }, async () => {
  const wish = {
    html: `<p>${'x'.repeat(1_000_000)}`,
    elements: Array.from({ length: 100 }, () => ({ selector: 'p' })),
  };
  const stop = await service.longestStop(async () => {
    const { status, text } = await service.call('POST', '/scrape', wish);
    expect([status, text.slice(0, 200)]).toEqual([400, expect.stringContaining('more than 16 MB together')]);
    expect(text).toContain('"result_too_large"');
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('the largest output of a command does not stop the service', { timeout: 300_000 }, async () => {
  const stop = await service.longestStop(async () => {
    const { status, body } = await sh('head -c 9000000 /dev/zero; head -c 9000000 /dev/zero >&2');
    expect(status).toBe(200);
    expect(Buffer.from(body.stdout_b64, 'base64').equals(Buffer.alloc(8 * 2 ** 20))).toBe(true);
    expect(body).toMatchObject({
      exit_code: 0,
      stderr_b64: body.stdout_b64,
      stdout_dropped_bytes: 9_000_000 - 8 * 2 ** 20,
    });
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test.each([
  ['output of control characters', 'exec_command', { command: 'cat /tmp/control' }],
  ['result of quotes', 'execute_playwright_code', { code: `return '"'.repeat(3_900_000)` }],
])('a tool with a large %s does not stop the service', { timeout: 300_000 }, async (_, name, args) => {
  const stop = await service.longestStop(async () => {
    const [result] = await tools([name, args]);
    expect(result!.content[0]!.text).toMatch(/more characters|than fit here/);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('the largest outcome of code does not stop the service', { timeout: 300_000 }, async () => {
  const code = `process.stdout.write('\\x01'.repeat(2 ** 20)); process.stderr.write('\\x02'.repeat(2 ** 20)); return 'é'.repeat(4e6)`;
  const stop = await service.longestStop(async () => {
    const { status, body } = await service.call('POST', `/browsers/${id}/playwright/execute`, { code });
    expect([status, body.result?.length, body.stderr?.length]).toEqual([200, 4e6, 2 ** 20]);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('the calls of one request do not each hold a large file', { timeout: 60_000 }, async () => {
  const results = await tools(
    ...Array.from({ length: 20 }, (): [string, object] => ['read_file', { path: '/tmp/control' }]),
  );
  expect(results.filter(({ isError }) => !isError).length).toBeLessThan(2);
});

test('readers of a file with many short lines do not stop the service', { timeout: 300_000 }, async () => {
  const read = async () => {
    const url = `${service.url}/browsers/${id}/logs/stream?source=path&follow=false&path=/tmp/lines`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${service.key}` } });
    let bytes = 0;
    for await (const chunk of response.body!) if ((bytes += chunk.length) > 300_000) break;
  };
  const stop = await service.longestStop(() => Promise.all(Array.from({ length: 8 }, read)));
  expect(stop).toBeLessThan(mostStopMs);
});

test(
  'a session with thousands of processes does not stop the service when another one ends',
  { timeout: 300_000 },
  async () => {
    const { body: crowd } = await service.call('POST', '/browsers', { headless: true, timeout_seconds: 600 });
    const script = 'i=0; while [ $i -lt 3500 ]; do sleep 600 & i=$((i+1)); done';
    const made = await service.call('POST', `/browsers/${crowd.session_id}/process/exec`, {
      command: 'sh',
      args: ['-c', `(${script}) >/dev/null 2>&1; set -- /proc/[0-9]*; echo $#`],
      timeout_sec: 120,
    });
    expect(Number(Buffer.from(made.body.stdout_b64, 'base64').toString())).toBeGreaterThan(3500);
    const stop = await service.longestStop(async () => {
      const { body } = await service.call('POST', '/browsers', { headless: true });
      await service.call('DELETE', `/browsers/${body.session_id}`);
      await sleep(7000); // the uids of ended sessions are looked at every five seconds
    });
    expect(stop).toBeLessThan(mostStopMs);
    await service.call('DELETE', `/browsers/${crowd.session_id}`);
  },
);
