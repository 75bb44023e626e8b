import Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bareSdk, deploy } from '../support/apps.ts';
import { zipOf } from '../support/extension-zip.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

const code = `
const { apps } = require('@onkernel/sdk');
const echo = async (context, payload) => payload;
apps.push({ name: 'large', getActions: () => [{ name: 'echo', handler: echo }] });
`;

let service: Awaited<ReturnType<typeof measuredService>>;
beforeAll(async () => {
  service = await measuredService();
  const client = new Kernel({ apiKey: service.key, baseURL: service.url });
  const { deployment, lines } = await deploy(client, await zipOf({ 'index.js': code, ...bareSdk }), 'index.js');
  if (deployment.status !== 'running') throw new Error(lines.join('\n'));
}, 60_000);
afterAll(() => service?.close());

const invocation = { app_name: 'large', version: 'latest', action_name: 'echo' };
/** Letters of two bytes take the longest to read, for each byte. */
const letters = (bytes: number) => JSON.stringify('ж'.repeat(bytes / 2 - 1));

test('payloads and outputs of the largest size do not stop the service', async () => {
  const stops: Record<string, number> = {};
  const send = async (name: string, method: string, path: string, status: number, body?: object) => {
    let answer: Awaited<ReturnType<typeof service.call>>;
    stops[name] = await service.longestStop(async () => {
      answer = await service.call(method, path, body);
      expect(answer.status, answer.text.slice(0, 500)).toBe(status);
    });
    return answer!.body;
  };
  await send('too large', 'POST', '/invocations', 400, { ...invocation, payload: letters(12 * 2 ** 20 - 200) });
  const largest = { ...invocation, payload: letters(4.5 * 2 ** 20) };
  const { id } = await send('run', 'POST', '/invocations', 200, largest);
  await send('cancel', 'PATCH', `/invocations/${id}`, 400, { status: 'failed', output: largest.payload });
  await send('read', 'GET', `/invocations/${id}`, 200);
  for (let more = 0; more < 2; more++) expect((await service.call('POST', '/invocations', largest)).status).toBe(200);
  await send('list', 'GET', `/invocations?limit=100`, 200);
  expect(Math.max(...Object.values(stops)), JSON.stringify(stops)).toBeLessThan(mostStopMs);
}, 300_000);
