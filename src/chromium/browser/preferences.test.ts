import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { framesByWindowManager, withoutOwnFrame } from './preferences.ts';

test('a profile says that the window manager draws frames, and keeps the rest', () => {
  expect(withoutOwnFrame()).toBe('{"browser":{"custom_chrome_frame":false}}');
  expect(withoutOwnFrame('{"a":1,"browser":{"b":2,"custom_chrome_frame":true}}')).toBe(
    '{"a":1,"browser":{"b":2,"custom_chrome_frame":false}}',
  );
});

test.each(['{"browser":{"custom_chrome_frame":false}}', 'no json', '[]', 'null', ''])('%j is left as it is', (text) =>
  expect(withoutOwnFrame(text)).toBeUndefined(),
);

test('text of very many values is left as it is, without being read', () => {
  const parsing = vi.spyOn(JSON, 'parse');
  expect(withoutOwnFrame(`{"a":[${'[],'.repeat(1_000_000)}0]}`)).toBeUndefined();
  expect(parsing).not.toHaveBeenCalled();
  parsing.mockRestore();
});

const owner = { uid: process.getuid!(), gid: process.getgid!(), name: 'someone', release() {} };

async function sessionDirectory() {
  const dir = await mkdtemp(join(tmpdir(), 'corral-preferences-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, 'home'));
  return dir;
}

test('it is written to a new and to an existing profile', async () => {
  const dir = await sessionDirectory();
  const folder = join(dir, 'home/user-data/Default');
  for (const before of [undefined, '{"kept":true}']) {
    if (before !== undefined) await writeFile(join(folder, 'Preferences'), before);
    await framesByWindowManager(dir, owner);
    const preferences: unknown = JSON.parse(await readFile(join(folder, 'Preferences'), 'utf8'));
    expect(preferences).toEqual({ ...(before && { kept: true }), browser: { custom_chrome_frame: false } });
  }
  expect(await readdir(folder)).toEqual(['Preferences']);
});

test('no link leads it out of the profile, wherever it is', async () => {
  for (const linked of ['user-data', 'user-data/Default', 'user-data/Default/Preferences']) {
    const dir = await sessionDirectory();
    const elsewhere = join(dir, 'elsewhere');
    await mkdir(join(elsewhere, 'Default'), { recursive: true });
    const isFile = linked.endsWith('Preferences');
    if (isFile) await writeFile(join(elsewhere, 'file'), '{}');
    await mkdir(join(dir, 'home', linked, '..'), { recursive: true });
    await symlink(isFile ? join(elsewhere, 'file') : elsewhere, join(dir, 'home', linked));
    await chmod(elsewhere, 0o777);
    await framesByWindowManager(dir, owner);
    expect(await readdir(join(elsewhere, 'Default'))).toEqual([]);
    expect((await readdir(elsewhere)).includes('Preferences')).toBe(false);
    if (isFile) expect(await readFile(join(elsewhere, 'file'), 'utf8')).toBe('{}');
  }
});
