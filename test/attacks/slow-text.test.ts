import Kernel from '@onkernel/sdk';
import { createServer, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bareSdk, deploy } from '../support/apps.ts';
import { zipOf } from '../support/extension-zip.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { portOf } from '../support/mux-server.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { upgrade } from '../support/upgrade.ts';

await requireSandbox();

/** Lines in which an expression finds the beginning of a secret field at many places. */
const nearlySecret = Array.from({ length: 60 }, () => `name="${'pwd'.repeat(43)}`).join('\n');
const site = createServer((_request, response) =>
  response.setHeader('content-type', 'application/json').end(nearlySecret),
);

/** Prints long lines of a character, on both of its outputs. */
const printing = `
const { apps } = require('@onkernel/sdk');
const print = async (to, line) => {
  for (let count = 0; count < 64; count++)
    if (!to.write(line)) await new Promise((go) => to.once('drain', go));
};
const handler = (_, { character }) =>
  Promise.all([process.stdout, process.stderr].map((to) => print(to, character.repeat(60000) + '\\n')));
apps.push({ name: 'printing', getActions: () => [{ name: 'print', handler }] });
`;
/** Each is a secret as it is and as JSON has it. */
const variables = Object.fromEntries(
  Array.from({ length: 200 }, (_, at) => [`V${at}`, `${'a'.repeat(30 + (at % 30))}"${at}`]),
);

/**
 * One thread serves all tenants. A client that sends a text that takes long to read stops the service for all others. Where no key is
 * required, every client can send one.
 */
describe('a text that is chosen to be read for long does not stop the service', { timeout: 300_000 }, () => {
  let service: Awaited<ReturnType<typeof measuredService>>;
  let session: { session_id: string; base_url: string };
  beforeAll(async () => {
    await listenOnLoopback(site);
    service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${portOf(site)}` });
    const on = { enabled: true };
    const { body } = await service.call('POST', '/browsers', {
      headless: true,
      timeout_seconds: 600,
      telemetry: { browser: { console: on, network: on } },
    });
    session = body;
  });
  afterAll(async () => {
    await service?.close();
    site.close();
  });

  /** The attack, and what shows that the service has read it all. */
  async function expectNoStop(attack: (run: number) => Promise<unknown>): Promise<void> {
    let run = 0;
    expect(await service.longestStop(() => attack(++run))).toBeLessThan(mostStopMs);
  }

  test('the address of a websocket, of slashes, without a key', async () => {
    await expectNoStop(async () =>
      expect(await upgrade(`${service.url}/${'/'.repeat(15_800)}x`)).toMatchObject({ status: 404 }),
    );
  });

  test('a console call of a page, of blanks', async () => {
    const said = async () =>
      (
        await service.call(
          'GET',
          `/browsers/${session.session_id}/logs/stream?source=supervisor&supervisor_process=console&follow=false`,
        )
      ).text;
    await expectNoStop(async (run) => {
      const code = `await page.evaluate(() => {
        console.log(...Array.from({ length: 6 }, () => ' '.repeat(8000) + 'x'));
        console.log('blanks ${run}');
      })`;
      expect(
        (await service.call('POST', `/browsers/${session.session_id}/playwright/execute`, { code })).body,
      ).toMatchObject({ success: true });
      await expect.poll(said).toContain(`blanks ${run}`);
    });
  });

  test('the body of a response that nearly has secret fields', async () => {
    const events = async () =>
      (await service.call('GET', `/browsers/${session.session_id}/telemetry/events?limit=100&category=network`)).text;
    await expectNoStop(async (run) => {
      const code = `await page.goto('http://127.0.0.1:${portOf(site)}/run-${run}')`;
      expect(
        (await service.call('POST', `/browsers/${session.session_id}/playwright/execute`, { code })).body,
      ).toMatchObject({ success: true });
      await expect.poll(events).toMatch(new RegExp(`network_response[^]*run-${run}"`));
    });
  });

  test('the Connection header of a request to send on, of blanks', async () => {
    const url = `${session.base_url}/curl/raw?url=${encodeURIComponent(`http://127.0.0.1:${portOf(site)}/`)}`;
    await expectNoStop(async () => {
      const status = await new Promise((resolve, reject) => {
        const asked = request(url, { headers: { connection: `close, a${' '.repeat(15_000)}b` }, agent: false });
        asked
          .on('error', reject)
          .on('response', (answer) => resolve(answer.resume().statusCode))
          .end();
      });
      expect(status).toBe(200);
    });
  });

  test('the host of a request through the browser, of many letters', async () => {
    const url = `http://${String.fromCharCode(...Array.from({ length: 16_000 }, (_, at) => 0x4e00 + at))}/`;
    await expectNoStop(async () =>
      expect(await service.call('POST', `/browsers/${session.session_id}/curl`, { url })).toMatchObject({
        status: 400,
        body: { code: 'invalid_input' },
      }),
    );
  });

  const ca_bundle = '-----BEGIN CERTIFICATE-----'.repeat(2400);
  const proxy = { type: 'custom', protocol: 'https', config: { host: 'proxy.example', port: 8080, ca_bundle } };
  const vault = { provider_type: 'vault', name: 'v', token: 't', server_url: 'https://vault.example', ca_bundle };
  test.each([
    ['a proxy', '/proxies', proxy],
    ['a store of credentials', '/org/credential_providers', vault],
  ])('certificates of %s that begin and do not end', async (_, path, body) => {
    await expectNoStop(async () =>
      expect(await service.call('POST', path, body)).toMatchObject({
        status: 400,
        text: expect.stringContaining('is not a list of PEM certificates'),
      }),
    );
  });

  test.each([
    ['that nearly has 200 secrets', variables, 'a'],
    ['that prints quotes, which a database escapes', {}, '"'],
  ])('lines of an app %s', async (_, env_vars, character) => {
    const client = new Kernel({ apiKey: service.key, baseURL: service.url, timeout: 110_000, maxRetries: 0 });
    const zip = await zipOf({ ...bareSdk, 'index.js': printing });
    const { deployment, lines } = await deploy(client, zip, 'index.js', { env_vars });
    expect(deployment.status, lines.join('\n')).toBe('running');
    await expectNoStop(async () => {
      const payload = JSON.stringify({ character });
      const action = { app_name: 'printing', action_name: 'print', version: 'latest', payload };
      const all = await Promise.all(Array.from({ length: 3 }, () => client.invocations.create(action)));
      for (const done of all) expect(done, done.status_reason).toMatchObject({ status: 'succeeded' });
    });
  });
});
