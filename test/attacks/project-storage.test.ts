import type Kernel from '@onkernel/sdk';
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { bareSdk, deploy } from '../support/apps.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { zipOf } from '../support/extension-zip.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();
const MB = 2 ** 20;

/** What a tenant stores outlives its sessions, so the bound on a session does not hold it. */
describe('a project that may store four megabytes', () => {
  let service: Service;
  let sdk: Kernel;
  beforeAll(async () => {
    service = await startService({ CORRAL_PROJECT_STORAGE_MB: '4' });
    sdk = service.sdk();
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
  });

  const extension = (megabytes: number) =>
    zipOf({
      'manifest.json': JSON.stringify({ manifest_version: 3, name: 'Large', version: '1' }),
      'large.bin': randomBytes(megabytes * MB),
    });

  async function upload(zip: Buffer, headers: Record<string, string> = {}) {
    const form = new FormData();
    form.append('file', new File([Uint8Array.from(zip)], 'a.zip'));
    const answer = await fetch(`${service.url}/extensions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, ...headers },
      body: form,
    });
    const body = (await answer.json()) as { id: string; code?: string; message?: string };
    return { status: answer.status, body };
  }

  async function empty() {
    for (const { id } of (await service.call('GET', '/extensions')).body)
      await service.call('DELETE', `/extensions/${id}`);
    await expect.poll(claims).toBe(0);
  }
  const claims = async () => (await service.app.store.db.rows(sql`select from storage_claims`)).length;

  test('stores as many concurrent extensions as fit, and the error names what to delete', async () => {
    const zip = await extension(1);
    const answers = await Promise.all(Array.from({ length: 12 }, () => upload(zip)));
    const kept = answers.filter(({ status }) => status === 201);
    expect(kept.length).toBeLessThanOrEqual(3);
    const { body } = answers.find(({ status }) => status !== 201)!;
    expect(body).toMatchObject({ code: 'project_storage_full' });
    expect(body.message).toMatch(/Delete profiles or extensions.*/);
    await empty();
    expect(await upload(zip)).toMatchObject({ status: 201 });
    await empty();
  });

  test('is counted for uploads that it never ends', async () => {
    const hanging = [0, 1, 2, 3, 4, 5].map(() => {
      const headers = {
        authorization: `Bearer ${service.key}`,
        'content-type': 'multipart/form-data; boundary=xx',
        'content-length': 40 * MB,
      };
      const sent = request(`${service.url}/extensions`, { method: 'POST', headers }).on('error', () => {});
      sent.write('--xx\r\ncontent-disposition: form-data; name="file"; filename="a.zip"\r\n\r\n');
      sent.write(randomBytes(MB));
      return sent;
    });
    const refused = async () => (await upload(await extension(1))).body.code;
    await expect.poll(refused, { timeout: 60_000 }).toBe('project_storage_full');
    for (const one of hanging) one.destroy();
    await empty();
    expect(await upload(await extension(1))).toMatchObject({ status: 201 });
    await empty();
  });

  test('does not keep another project from storing', async () => {
    const filled = await Promise.all([1, 2, 3].map(async () => upload(await extension(1))));
    expect(filled.some(({ status }) => status === 201)).toBe(true);
    const other = await service.call('POST', '/org/projects', { name: 'other' });
    expect(await upload(await extension(1), { 'x-kernel-project-id': other.body.id })).toMatchObject({ status: 201 });
    await empty();
  });

  test('is refused the save of a larger profile, and the profile is unchanged', async () => {
    const profile = await sdk.profiles.create({});
    const save = async (megabytes: number) => {
      const { session_id: id } = await sdk.browsers.create({
        headless: true,
        profile: { id: profile.id, save_changes: true },
      });
      const script = `mkdir -p ~/user-data/Default; head -c ${megabytes * MB} /dev/urandom >~/user-data/Default/large`;
      await sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', script] });
      await sdk.browsers.deleteByID(id);
      return (await service.call('GET', `/profiles/${profile.id}`)).body.last_save_error?.message;
    };
    expect(await save(0)).toBe(undefined);
    expect(await save(6)).toMatch(/CORRAL_PROJECT_STORAGE_MB/);
    expect((await service.call('GET', `/profiles/${profile.id}/versions`)).body).toHaveLength(1);
    await expect.poll(claims).toBe(0);
    await sdk.profiles.delete(profile.id);
  });

  test('has its recording ended', async () => {
    const { session_id: id, cdp_ws_url } = await sdk.browsers.create({ headless: true });
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    const page = browser.contexts()[0]!.pages()[0]!;
    await page.evaluate(`(() => {
      const canvas = document.body.appendChild(document.createElement('canvas'));
      canvas.width = innerWidth; canvas.height = innerHeight;
      const context = canvas.getContext('2d');
      const picture = context.createImageData(canvas.width, canvas.height);
      setInterval(() => {
        for (let at = 0; at < picture.data.length; at++) picture.data[at] = at % 4 === 3 ? 255 : Math.random() * 255;
        context.putImageData(picture, 0, 0);
      }, 100);
    })()`);
    const { replay_id } = await sdk.browsers.replays.start(id, { framerate: 10 });
    const ending = async () => {
      const all = (await service.call('GET', `/browsers/${id}/replays`)).body as Record<string, unknown>[];
      return all.find((one) => one['replay_id'] === replay_id)?.['ended_reason'];
    };
    await expect.poll(ending, { timeout: 90_000, interval: 200 }).toBe('storage_limit');
    await expect.poll(claims, { timeout: 60_000 }).toBe(0);
    expect(await service.call('POST', `/browsers/${id}/replays`, {})).toMatchObject({
      status: 507,
      body: { code: 'project_storage_full' },
    });
    expect(await page.evaluate('6 * 7')).toBe(42);
    await browser.close();
    await sdk.browsers.deleteByID(id);
  }, 300_000);
});

const echo = `require('@onkernel/sdk').apps.push({
  name: 'echo',
  getActions: () => [{ name: 'run', handler: async (ctx, text) => text }],
});`;

describe('a project that may keep 64 megabytes of invocations', () => {
  let service: Service;
  let sdk: Kernel;
  beforeAll(async () => {
    service = await startService({ CORRAL_INVOCATION_HISTORY_MB: '64' });
    sdk = service.sdk();
    const { deployment, lines } = await deploy(sdk, await zipOf({ ...bareSdk, 'index.js': echo }), 'index.js');
    if (deployment.status !== 'running') throw new Error(lines.join('\n'));
  }, 300_000);
  afterAll(() => service?.close());

  test('has its oldest invocations deleted, and not the newest', async () => {
    const payload = JSON.stringify(randomBytes(3 * MB).toString('base64'));
    const kept = async () => {
      const row = await service.app.store.db.row<{ bytes: string }>(
        sql`select sum(octet_length(payload) + octet_length(output)) as bytes from invocations`,
      );
      return Number(row!.bytes) / MB;
    };
    const ids: string[] = [];
    for (let count = 0; count < 16; count++) {
      const params = { app_name: 'echo', action_name: 'run', version: 'latest', payload };
      const { id, status } = await sdk.invocations.create(params);
      expect(status).toBe('succeeded');
      ids.push(id);
    }
    await expect.poll(kept, { timeout: 10_000 }).toBeLessThanOrEqual(64);
    expect(await sdk.invocations.retrieve(ids.at(-1)!)).toMatchObject({ status: 'succeeded', output: payload });
    await expect(sdk.invocations.retrieve(ids[0]!)).rejects.toMatchObject({ status: 404 });
  }, 300_000);
});
