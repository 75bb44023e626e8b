import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepDownload, missingFile, namesFor } from './session-files.ts';

const owner = { uid: 65_534, gid: 65_534 } as never;
const guid = (last: number) => `00000000-0000-4000-8000-00000000000${last}`;
let dir: string;
let incoming: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'corral-files-'));
  incoming = join(dir, 'home/.cache/corral/downloads');
  await mkdir(incoming, { recursive: true });
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function keep(number: number, name: string) {
  await writeFile(join(incoming, guid(number)), `content ${number}`);
  return keepDownload(dir, owner, { guid: guid(number), name });
}

test('downloads of the same name are all kept, each under a free name', async () => {
  expect(await keep(1, 'a.tar')).toBe('/home/corral/Downloads/a.tar');
  expect(await keep(2, 'a.tar')).toBe('/home/corral/Downloads/a (1).tar');
  expect(await Promise.all([keep(3, 'a.tar'), keep(4, 'a.tar')])).toHaveLength(2);
  expect((await readdir(join(dir, 'home/Downloads'))).toSorted()).toEqual([
    'a (1).tar',
    'a (2).tar',
    'a (3).tar',
    'a.tar',
  ]);
  expect(await readFile(join(dir, 'home/Downloads/a (1).tar'), 'utf8')).toBe('content 2');
  expect(await readdir(incoming)).toEqual([]);
});

test('no name and no link leads a download out of the directory', async () => {
  const outside = join(dir, 'outside');
  await mkdir(outside);
  expect(await keep(1, '../../../outside/x')).toBe('/home/corral/Downloads/.._.._.._outside_x');
  expect(await keep(2, '..')).toBe('/home/corral/Downloads/download');
  expect(await keepDownload(dir, owner, { guid: '../../secret', name: 'x' })).toBeUndefined();
  expect(await keepDownload(dir, owner, { guid: guid(9), name: 'x' })).toBeUndefined();
  await rm(join(dir, 'home/Downloads'), { recursive: true });
  await symlink(outside, join(dir, 'home/Downloads'));
  expect(await keep(3, 'x')).toBeUndefined();
  expect(await readdir(outside)).toEqual([]);
});

test('a long name keeps its ending and fits into a directory', () => {
  const [first, second] = namesFor(`${'ä'.repeat(300)}.txt`);
  expect(Buffer.byteLength(first!)).toBeLessThanOrEqual(255);
  expect(second).toMatch(/^ä+ \(1\)\.txt$/);
  expect([...namesFor('😀'.repeat(200))][0]).toBe('😀'.repeat(60));
});

test('a path is missing when it is certainly not in the session', async () => {
  await writeFile(join(dir, 'home/there.txt'), '');
  await symlink('/nowhere', join(dir, 'home/link'));
  const missing = (path: string) => missingFile({ dir, init: undefined }, [path]);
  for (const path of ['/home/corral/there.txt', '/home/corral/link', '/home/corral/link/x', '/tmp/unknown.txt'])
    expect(await missing(path), path).toBeUndefined();
  for (const path of ['/home/corral/not.txt', '/home/corral/no/not.txt', '/home/me/x', '/Users/me/x', 'C:\\x', 'x', ''])
    expect(await missing(path), path).toBe(path);
  const here = { dir, init: process.pid };
  expect(await missingFile(here, ['/home/corral/there.txt', `/tmp/${guid(1)}`])).toBe(`/tmp/${guid(1)}`);
});
