import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

/**
 * A service that starts where no sandbox can be made gives out no browser, says why, and mends itself when a sandbox can be made.
 *
 * The trial is made to fail at its edge: it works in a directory below TMPDIR, and there is none.
 */
const before = process.env['TMPDIR'];
let root: string;
let service: Service | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'corral-closed-'));
  chmodSync(root, 0o711); // without a sandbox, sessions reach their directories as their own user
  process.env['TMPDIR'] = join(root, 'missing');
});
afterEach(async () => {
  restore();
  await service?.close();
  service = undefined;
  rmSync(root, { recursive: true, force: true });
});

function restore() {
  if (before === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = before;
}

/** Each with its own settings object, for which the findings about the machine are cached. */
const start = async (settings: Record<string, string>) =>
  (service = await startService({ CORRAL_DATA_DIR: join(root, 'data'), ...settings }));

test('without a sandbox there are no browsers, pools say why, and all is well when there is one', async () => {
  const { call } = await start({ CORRAL_SESSION_UIDS: '31000-31999', CORRAL_WARM_SPARES: 'headless:1' });
  const ready = await call('GET', '/ready');
  expect(ready).toMatchObject({ status: 503, body: { status: 'unavailable' } });
  const isolation = () => ready.body.parts.find(({ name }: { name: string }) => name === 'isolation');
  expect(isolation()).toMatchObject({ ok: false, detail: expect.stringContaining('no sandbox for browsers') });
  expect(isolation().detail).toContain('ENOENT');

  for (const body of [{ headless: true }, { headless: false }, { headless: true, stealth: true }]) {
    const refused = await call('POST', '/browsers', body);
    expect(refused, service!.log.slice(-30).join('')).toMatchObject({ status: 503, body: { code: 'no_sandbox' } });
    expect(refused.body.message).toMatch(/npm run doctor.*CORRAL_ALLOW_UNSANDBOXED/);
  }
  const pool = await call('POST', '/browser_pools', { name: 'crowd', size: 1 });
  expect(pool.status).toBe(201);
  const poolNow = async () => (await call('GET', `/browser_pools/${pool.body.id}`)).body;
  await expect.poll(poolNow, { timeout: 60_000 }).toMatchObject({
    available_count: 0,
    last_error: { message: expect.stringContaining('does not support a sandbox') },
  });
  expect((await call('GET', '/browsers')).body).toEqual([]);

  mkdirSync(process.env['TMPDIR']!); // the operator mends it
  await expect.poll(async () => (await call('GET', '/ready')).status, { timeout: 100_000 }).toBe(200);
  expect(await call('POST', '/browsers', { headless: true }), service!.log.slice(-30).join('')).toMatchObject({
    status: 200,
  });
  await expect.poll(poolNow, { timeout: 100_000 }).toMatchObject({ available_count: 1 });
  expect(service!.log.join('')).toContain('sandbox.granted');
}, 300_000);

test('the operator may want browsers all the same', async () => {
  const { call } = await start({ CORRAL_SESSION_UIDS: '32000-32999', CORRAL_ALLOW_UNSANDBOXED: 'true' });
  expect(await call('GET', '/ready')).toMatchObject({ status: 200, body: { status: 'degraded' } });
  expect(await call('POST', '/browsers', { headless: true }), service!.log.slice(-30).join('')).toMatchObject({
    status: 200,
  });
}, 300_000);
