import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listen, root } from './run.mjs';
import { duration, say, Stop } from './say.mjs';

const dist = join(root, 'dist');

/**
 * Builds src/ into dist/ when it changed. The build goes into a new folder that replaces dist once it is complete, so a
 * failed or interrupted build leaves the last good one, and files of deleted sources do not remain.
 */
export async function compile({ quiet = false } = {}) {
  const sources = filesOf('src').filter((file) => !/\.test\.ts$|\.snap$|\.md$/.test(file));
  const wanted = fingerprint([...sources, 'tsconfig.json', 'tsconfig.build.json']);
  if (builtFrom() === wanted) return;

  const started = Date.now();
  // Beside dist, at the same depth: source maps name their sources by relative path.
  const next = join(root, `dist-${process.pid}`);
  try {
    clearLeftovers();
    const { code, output } = await listen('tsc', ['--project', 'tsconfig.build.json', '--outDir', next]);
    if (code !== 0) throw new Stop(`${output}\n\nThe build failed; the compiler's reasons are above.`);

    // Migrations, pages, styles: whatever is not TypeScript is needed at run time unchanged.
    for (const file of sources.filter((file) => !file.endsWith('.ts'))) {
      const copy = join(next, file.slice('src/'.length));
      mkdirSync(dirname(copy), { recursive: true });
      cpSync(join(root, file), copy);
    }
    writeFileSync(join(next, '.built-from'), wanted);
    swap(next);
  } catch (error) {
    if (error.code === 'EACCES' || error.code === 'EPERM')
      throw new Stop(
        `The build could not write ${error.path}: it belongs to somebody else. Remove it or run as its owner.`,
      );
    throw error;
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
  if (!quiet) say(`Built in ${duration(Date.now() - started)}.`);
}

/** Hashes the contents, not their dates: a fresh clone or a copied folder with the same sources needs no new build. */
function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

function builtFrom() {
  const stamp = join(dist, '.built-from');
  return existsSync(stamp) ? readFileSync(stamp, 'utf8') : undefined;
}

function filesOf(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? filesOf(`${folder}/${entry.name}`) : `${folder}/${entry.name}`));
}

/** Two commands may build at once (npm start beside npm test). Both builds are right, so the second one simply wins. */
function swap(next) {
  const old = `${next}-old`;
  for (let attempt = 1; ; attempt++) {
    try {
      if (existsSync(dist)) renameSync(dist, old);
      renameSync(next, dist);
      return rmSync(old, { recursive: true, force: true });
    } catch (error) {
      rmSync(old, { recursive: true, force: true });
      if (attempt === 5 || !['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
    }
  }
}

/** Removes folders of builds that were killed half way, but not those of a running process. */
function clearLeftovers() {
  for (const name of readdirSync(root)) {
    const pid = /^dist-(\d+)(-old)?$/.exec(name)?.[1];
    if (pid && !isAlive(Number(pid))) rmSync(join(root, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process runs, and belongs to another user.
    return error.code === 'EPERM';
  }
}
