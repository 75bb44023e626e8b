import { createHash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { chmod, copyFile, mkdir, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The read-only part of this installation that sessions see: the guest's code, the packages it uses, and Node if that is not in /usr. A
 * copy, because the sessions' user may lack access to the installation's path, and the installation holds more than sessions may see.
 */
export interface Toolbox {
  readonly dir: string;
  /** The directory exists from the start, so that it can be mounted; this resolves when its content is complete. */
  readonly ready: Promise<void>;
  /** The path of Node, if the toolbox is mounted at `at`. */
  node(at: string): string;
}

const SOURCES = ['channel', 'stream', 'inside'];
const PACKAGES = ['@lydell/node-pty', 'yauzl', 'yazl', 'playwright-core', 'amaro'];
/** The trace viewer, types and notices: files that are not executed. */
const UNUSED = /\/(types|vite|tools|bin)$|\.(d\.ts|md|map)$|ThirdPartyNotices|LICENSE$/;

const here = dirname(fileURLToPath(import.meta.url));

export function openToolbox(dir: string): Toolbox {
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  const ready = fill(dir);
  ready.catch(() => {}); // callers that await it get the error
  return { dir, ready, node: (at) => (nodeIsEverywhere() ? process.execPath : join(at, 'bin/node')) };
}

export const nodeIsEverywhere = () => process.execPath.startsWith('/usr/');

async function fill(dir: string): Promise<void> {
  await chmod(dir, 0o755); // independent of the umask
  const sources = await sourcesIn();
  const packages = await packagesOf(PACKAGES);
  const stamp = join(dir, 'made-of');
  const wanted = fingerprint([process.execPath, process.version, ...sources.flat(), ...[...packages].flat()]);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return;

  for (const name of await readdir(dir)) await rm(join(dir, name), { recursive: true, force: true });
  await put(join(dir, 'package.json'), '{ "type": "module" }\n');
  for (const [name, code] of sources.map(compiled)) await put(join(dir, 'guest', name), code);
  for (const [name, from] of packages) await copy(from, join(dir, 'node_modules', name));
  if (!nodeIsEverywhere()) {
    await mkdir(join(dir, 'bin'));
    await copyFile(process.execPath, join(dir, 'bin/node'));
    await chmod(join(dir, 'bin/node'), 0o755);
  }
  await put(stamp, wanted);
}

type Source = [name: string, code: string];

/** The code below `at` with a path that begins with one of `beginnings`; by default the guest's. */
export async function sourcesIn(at = here, beginnings: readonly string[] = SOURCES): Promise<Source[]> {
  const files: string[] = [];
  for (const name of await readdir(at, { recursive: true }))
    if (beginnings.some((start) => name.startsWith(start)) && /(?<!\.test)\.[jt]s$/.test(name)) files.push(name);
  return Promise.all(files.sort().map(async (name): Promise<Source> => [name, await readFile(join(at, name), 'utf8')]));
}

/** The code as Node runs it. A build contains it; from the sources, types are stripped here. */
export function compiled([name, code]: Source): Source {
  if (name.endsWith('.js')) return [name, code];
  const stripped = amaro().transformSync(code, { mode: 'strip-only' }).code;
  return [name.replace(/\.ts$/, '.js'), stripped.replace(/(from\s+'\.[^']*)\.ts'/g, "$1.js'")];
}

/** The package has no types. */
const amaro = () =>
  createRequire(import.meta.url)('amaro') as { transformSync(code: string, options: object): { code: string } };

/** Packages and all their dependencies, each with its directory. */
export async function packagesOf(names: string[], from = here, found = new Map<string, string>()) {
  for (const name of names) {
    if (found.has(name)) continue;
    const at = ancestors(from)
      .map((dir) => join(dir, 'node_modules', name))
      .find((path) => existsSync(join(path, 'package.json')));
    if (at === undefined) continue; // an optional binary for another platform
    found.set(name, await realpath(at));
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      await readFile(join(at, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string> | undefined>;
    await packagesOf(Object.keys({ ...dependencies, ...optionalDependencies }), await realpath(at), found);
  }
  return found;
}

function ancestors(dir: string): string[] {
  return dir === dirname(dir) ? [dir] : [dir, ...ancestors(dirname(dir))];
}

/** Copies a directory; `unused` selects the files that are left out. Programs stay executable. */
export async function copy(from: string, to: string, unused = UNUSED): Promise<void> {
  await mkdir(to, { recursive: true });
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const path = join(from, entry.name);
    if (unused.test(path)) continue;
    if (entry.isDirectory()) await copy(path, join(to, entry.name), unused);
    else if (entry.isFile()) {
      await copyFile(path, join(to, entry.name));
      await chmod(join(to, entry.name), unused === UNUSED ? 0o644 : 0o755);
    }
  }
}

export async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await chmod(dirname(path), 0o755);
  await writeFile(path, text);
  await chmod(path, 0o644);
}

export function fingerprint(parts: string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex');
}
