import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ZipFile } from 'yazl';
import { extensionFiles, zipOf } from '../../test/support/extension-zip.ts';
import { checkExtension, unpackExtension } from './archive.ts';

let dir: string;
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'corral-zip-'))));
afterAll(() => rm(dir, { recursive: true, force: true }));

async function file(content: Buffer): Promise<string> {
  const path = join(await mkdtemp(join(dir, 'z-')), 'file.zip');
  await writeFile(path, content);
  return path;
}

const good = extensionFiles('x');
const manifest = (fields: object) => JSON.stringify({ manifest_version: 3, name: 'x', version: '1', ...fields });

/** Renames an entry to a name that no zip library would write. */
const renamed = (zip: Buffer, from: string, to: string) =>
  Buffer.from(zip.toString('latin1').replaceAll(from, to), 'latin1');

function commented(): Promise<Buffer> {
  const zip = new ZipFile();
  zip.addBuffer(Buffer.from(good['manifest.json']!), 'manifest.json');
  const options = { compress: false, fileComment: 'x'.repeat(60_000) };
  for (let at = 0; at < 40; at++) zip.addBuffer(Buffer.alloc(0), `f${at}`, options);
  zip.end();
  return buffer(zip.outputStream);
}

describe('a zip with an extension', () => {
  test.each([
    ['at its top', good],
    [
      'one directory down',
      Object.fromEntries(Object.entries(good).map(([name, text]) => [`some-extension-main/${name}`, text])),
    ],
    [
      'with comments in its manifest',
      {
        ...good,
        'manifest.json': `// mine\n{ /* the third */ "manifest_version": 3, "name": "http://x", "version": "1" }`,
      },
    ],
  ])('%s is taken, and unpacked from where the manifest is', async (_, files) => {
    const path = await file(await zipOf({ ...files, 'README.txt': 'beside' }));
    const to = await mkdtemp(join(dir, 'to-'));
    await unpackExtension(path, to);
    expect(await readdir(to)).toEqual(expect.arrayContaining(['manifest.json', 'scripts', 'worker.js']));
    expect(await readFile(join(to, 'scripts/content.js'), 'utf8')).toBe(good['scripts/content.js']);
  });

  test.each<[string, () => Promise<Buffer>, RegExp]>([
    ['that is not a zip', async () => Buffer.from('hello'), /cannot be read/],
    ['that is cut short', async () => (await zipOf(good)).subarray(0, 300), /cannot be read/],
    ['without a manifest', () => zipOf({ 'a/b/manifest.json': manifest({}) }), /no manifest\.json/],
    [
      'with two of them',
      () => zipOf({ 'a/manifest.json': manifest({}), 'b/manifest.json': manifest({}) }),
      /one extension at a time/,
    ],
    [
      'of manifest version 2',
      () => zipOf({ 'manifest.json': manifest({ manifest_version: 2 }) }),
      /version 2, which Chromium no longer runs/,
    ],
    ['of no manifest version', () => zipOf({ 'manifest.json': '{"name":"x","version":"1"}' }), /must be 3/],
    ['without a name', () => zipOf({ 'manifest.json': '{"manifest_version":3,"version":"1"}' }), /without a name/],
    ['with a manifest that is not JSON', () => zipOf({ 'manifest.json': '{' }), /not JSON/],
    ['with a manifest that is a list', () => zipOf({ 'manifest.json': '[]' }), /not an object/],
    [
      'with a path outside',
      async () => renamed(await zipOf({ ...good, 'xx/evil.js': '' }), 'xx/evil.js', '../evil.js'),
      /cannot be read/,
    ],
    [
      'with an absolute path',
      async () => renamed(await zipOf({ ...good, 'xetc/evil': '' }), 'xetc/evil', '/etc/evil'),
      /cannot be read/,
    ],
    [
      'with a symbolic link',
      () => zipOf({ ...good, link: { content: '/etc/passwd', mode: 0o120777 } }),
      /a link or a device/,
    ],
    ['with a device', () => zipOf({ ...good, device: { content: '', mode: 0o020666 } }), /a link or a device/],
    ['with a file twice', async () => renamed(await zipOf({ ...good, a1: '', a2: '' }), 'a2', 'a1'), /'a1' twice/],
    [
      'with a file that is a directory, too',
      async () => renamed(await zipOf({ ...good, aa: '', 'ab/c': '' }), 'ab/c', 'aa/c'),
      /file and as a directory/,
    ],
    [
      'of more entries than an extension has',
      () => zipOf({ ...good, ...Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`f${index}`, ''])) }),
      /more than 10000 entries/,
    ],
    [
      'with more directories than entries are allowed',
      () => zipOf(Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}${'/a'.repeat(60)}/f`, '']))),
      /more than 10000 directories/,
    ],
    ['with comments beyond those of any packer', commented, /2 MiB of comments and extra fields/],
    ['that is a bomb', () => zipOf({ ...good, zeros: Buffer.alloc(50 * 1024 * 1024) }), /more than 200 times its size/],
  ])('%s is refused with a sentence', async (_, make, sentence) => {
    await expect(checkExtension(await file(await make()))).rejects.toThrow(sentence);
  });

  test.each(['"', '/*'])('with a manifest that never closes its %s is refused in one look', async (opened) => {
    const escaped = '\\"'.repeat(150_000);
    const path = await file(await zipOf({ 'manifest.json': `{${opened}${escaped}` }));
    await expect(checkExtension(path)).rejects.toThrow(/not JSON/);
  });

  test('that claims to be smaller than it is does not get beyond its claim', async () => {
    const zip = await zipOf({ ...good, zeros: Buffer.alloc(1024 * 1024) });
    const claimed = Buffer.alloc(4);
    claimed.writeUInt32LE(1024 * 1024);
    const lied = renamed(zip, claimed.toString('latin1'), '\x10\0\0\0');
    const to = join(dir, 'lied');
    await mkdir(to);
    await expect(unpackExtension(await file(lied), to)).rejects.toThrow(/cannot be read/);
  });
});
