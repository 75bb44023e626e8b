import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { isLight } from '../lib/json-weight.ts';
import { isDirectory, refuseUnsafe, unfit, withEntries } from '../uploads/zip.ts';

const manifestBytes = 1024 * 1024;

/**
 * Checks the zip of an unpacked extension before anything is written, and its manifest. `root` is the directory of the manifest: the top, or one directory below.
 */
export async function checkExtension(path: string): Promise<{ root: string }> {
  return withEntries(path, async (zip, entries) => {
    await refuseUnsafe(entries);
    const manifests = entries.filter(({ fileName }) => /^([^/]+\/)?manifest\.json$/.test(fileName));
    const manifest = manifests.find(({ fileName }) => fileName === 'manifest.json') ?? manifests[0];
    if (!manifest)
      throw unfit('has no manifest.json, neither at its top nor in a directory there. Zip the unpacked extension.');
    if (manifests.length > 1 && manifest.fileName !== 'manifest.json')
      throw unfit('has several directories with a manifest.json. Zip one extension at a time.');
    if (manifest.uncompressedSize > manifestBytes) throw unfit('has a manifest.json of more than 1 MiB.');
    checkManifest(await text(await zip.openReadStreamPromise(manifest)));
    return { root: dirname(manifest.fileName) === '.' ? '' : `${dirname(manifest.fileName)}/` };
  });
}

/** Writes the contents of the manifest's directory into an existing, empty directory that is used for nothing else. */
export async function unpackExtension(path: string, to: string): Promise<void> {
  const { root } = await checkExtension(path);
  await withEntries(path, async (zip, entries) => {
    for (const entry of entries) {
      if (!entry.fileName.startsWith(root)) continue;
      const at = join(to, entry.fileName.slice(root.length));
      await mkdir(isDirectory(entry) ? at : dirname(at), { recursive: true });
      if (!isDirectory(entry))
        await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(at, { flags: 'wx', mode: 0o644 }));
    }
  });
}

function checkManifest(json: string) {
  let manifest: Record<string, unknown>;
  const bare = withoutComments(json.replace(/^\uFEFF/, ''));
  if (!isLight(bare)) throw unfit('has a manifest.json with more names and values than any needs.');
  try {
    manifest = JSON.parse(bare);
  } catch (error) {
    throw unfit(`has a manifest.json that is not JSON: ${(error as Error).message}.`);
  }
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest))
    throw unfit('has a manifest.json that is not an object.');
  const { manifest_version: version } = manifest;
  if (version === 2)
    throw unfit('holds an extension of manifest version 2, which Chromium no longer runs. Use its version 3.');
  if (version !== 3) throw unfit(`has a manifest.json with manifest_version ${JSON.stringify(version)}; it must be 3.`);
  for (const field of ['name', 'version'])
    if (typeof manifest[field] !== 'string') throw unfit(`has a manifest.json without a ${field}.`);
}

/**
 * Chromium allows comments in a manifest. Strings are left unchanged. An unclosed string or comment extends to the end,
 * so that nothing is scanned twice: with a megabyte of unclosed ones that would take minutes.
 */
function withoutComments(json: string): string {
  // not linear: each way ends with what may be missing, or with $, so that no search fails
  return json.replace(/("(?:[^"\\]|\\.)*"?)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, '$1'); // a function takes five times as long
}
