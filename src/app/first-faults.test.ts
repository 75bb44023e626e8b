import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../config.ts';
import { databaseFault, makeDataDir, refuseUnusable } from './first-faults.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'corral-faults-'));
});
afterAll(() => rm(dir, { recursive: true }));

test('settings that cannot be used are refused all at once, without a secret in the text', async () => {
  const config = readConfig({
    CORRAL_ALLOW_PRIVATE_HOSTS: '10.0.0.0/99,http://intranet',
    CORRAL_SECRET_KEY: 'sesame',
    CORRAL_CHROMIUM: join(dir, 'no-browser'),
    CORRAL_HEADLESS_SHELL: dir,
  });
  const { message } = await refuseUnusable(config).then(
    () => expect.fail(),
    (error: Error) => error,
  );
  expect(message).toMatch(
    /10\.0\.0\.0\/99.*http:\/\/intranet.*CORRAL_SECRET_KEY.*CORRAL_CHROMIUM.*is not there.*CORRAL_HEADLESS_SHELL.*is not a file/s,
  );
  expect(message).not.toContain('sesame');
});

test('a data directory is made with its parents, and may be there already', async () => {
  const path = join(dir, 'a', 'b');
  await makeDataDir(path);
  await makeDataDir(path);
  expect((await stat(path)).mode & 0o777).toBe(0o700);
});

test('a data directory that is a file, lies below one, or cannot be made is refused in a sentence', async () => {
  const file = join(dir, 'file');
  await writeFile(file, '');
  await expect(makeDataDir(file)).rejects.toThrow(/CORRAL_DATA_DIR is '.*file', which is a file/);
  await expect(makeDataDir(join(file, 'x'))).rejects.toThrow(/which is a file or lies below one/);
  await expect(makeDataDir('/proc/corral/data')).rejects.toThrow(/which cannot be made \(ENOENT\)/);
});

test('the reason why a database cannot be used names it, without its password', () => {
  const url = 'postgres://me:hunter2@db.example:5433/corral';
  const refused = databaseFault(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), url);
  expect(refused.message).toMatch(
    /DATABASE_URL: the database me@db\.example:5433\/corral cannot be used: nothing listens there \(ECONNREFUSED\)\. Start/,
  );
  expect(refused.message).not.toContain('hunter2');
  const silent = databaseFault(new Error('timeout expired'), url); // the client gives it no code
  expect(silent.message).toContain('no PostgreSQL answers there (ETIMEDOUT)');
  const fault = new Error('a bug');
  expect(databaseFault(fault, url)).toBe(fault);
});
