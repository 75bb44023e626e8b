import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildConsole } from './console.mjs';
import { joinCommand, joinService } from './join.mjs';
import { operationsOf } from './operations.mjs';
import { listen, root } from './run.mjs';
import { duration, say, Stop } from './say.mjs';
import { bundleWeb } from './web.mjs';

const dist = join(root, 'dist');

/**
 * Builds src/ into dist/ when it changed. The build goes into a new folder that replaces dist once it is complete, so a
 * failed or interrupted build leaves the last good one, and files of deleted sources do not remain. Without `types` they are not checked,
 * which is most of tsc's work: for callers that check them anyway.
 */
export async function compile({ quiet = false, types = true } = {}) {
  const sources = filesOf('src').filter((file) => !/\.test\.ts$|\.snap$|\.md$/.test(file));
  const shared = ['src/lib/look.ts', 'src/lib/stream-heartbeat.ts'];
  const page = fingerprint([...consoleSources(), ...shared, 'package-lock.json', 'scripts/console.mjs']);
  const service = [
    'tsconfig.json',
    'tsconfig.build.json',
    'tsconfig.web.json',
    'package-lock.json',
    'openapi.json',
    'scripts/compile.mjs',
    'scripts/join.mjs',
    'scripts/web.mjs',
  ];
  const wanted = `${fingerprint([...sources, ...service, 'scripts/operations.mjs'])} ${page}`;
  if (builtFrom() === wanted) return;

  const started = Date.now();
  // Beside dist, at the same depth: source maps name their sources by relative path.
  const next = join(root, `dist-${process.pid}`);
  try {
    clearLeftovers();
    const flags = types ? [] : ['--noCheck'];
    const compiled = await Promise.all([
      listen('tsc', ['--project', 'tsconfig.build.json', '--outDir', next, ...flags]),
      ...(types ? [listen('tsc', ['--project', 'tsconfig.web.json'])] : []),
    ]);
    for (const { code, output } of compiled)
      if (code !== 0) throw new Stop(`${output}\n\nThe build failed; the compiler's reasons are above.`);
    await bundleWeb(next);

    // Migrations, pages: other files that are not TypeScript are needed at run time unchanged.
    for (const file of sources.filter((file) => !file.endsWith('.ts') && !file.includes('/web/'))) {
      const copy = join(next, file.slice('src/'.length));
      if (existsSync(copy))
        throw new Stop(`${file} would replace what ${file.replace(/js$/, 'ts')} is built to. Rename one of them.`);
      mkdirSync(dirname(copy), { recursive: true });
      cpSync(join(root, file), copy);
    }
    // What the command line knows of the API.
    const operations = operationsOf(JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')));
    writeFileSync(join(next, 'cli/operations.json'), JSON.stringify(operations));
    const { listTools } = await import(pathToFileURL(join(next, 'chromium/guest/inside/page-tools.js')).href);
    writeFileSync(join(next, 'mcp/page-tools.json'), JSON.stringify(await listTools()));
    await joinTypebox(next);
    await joinService(next);
    await joinCommand(next);
    const web = 'console/web';
    await buildConsole({ folder: join(next, web), last: join(dist, web), wanted: page });
    writeFileSync(join(next, '.built-from'), wanted);
    swap(next);
  } catch (error) {
    if (error.code === 'EACCES' || error.code === 'EPERM')
      throw new Stop(`The build could not write ${error.path}: another user owns it. Remove it or run as its owner.`);
    throw error;
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
  if (!quiet) say(`Built in ${duration(Date.now() - started)}.`);
}

/**
 * Puts typebox into the build as one file. As a package it is 679 small modules, and reading them takes half a second of processor time at
 * every start of the service and of the command line, a fifth of the whole start.
 */
async function joinTypebox(folder) {
  const { buildSync } = await import('esbuild'); // not at the top: a fresh clone has no packages yet
  const entryPoints = { typebox: 'typebox', 'typebox-value': 'typebox/value' };
  const outdir = join(folder, 'joined');
  const options = {
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'silent',
  };
  // Not `build`, which leaves a process that waits for more.
  buildSync({ ...options, entryPoints, outdir, absWorkingDir: root });
  for (const file of filesBelow(folder).filter((file) => file.endsWith('.js') && !file.startsWith(outdir))) {
    const code = readFileSync(file, 'utf8');
    const place = `./${relative(dirname(file), outdir)}`;
    const joined = code
      .replace(/ from 'typebox';$/m, ` from '${place}/typebox.js';`)
      .replace(/ from 'typebox\/value';$/m, ` from '${place}/typebox-value.js';`);
    if (joined !== code) writeFileSync(file, joined);
  }
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

/** The sources of the console, without its API types, which are generated from openapi.json and removed after the build. */
function consoleSources() {
  const top = ['index.html', 'vite.config.ts', 'tsconfig.json', 'package.json'].map((name) => `console/${name}`);
  return [...top, ...filesOf('console/src').filter((file) => !/\.d\.ts$|\.test\.tsx?$/.test(file))];
}

/** The files of a folder of the package and of those below it, by their paths in the package. */
function filesOf(folder) {
  return filesBelow(join(root, folder)).map((file) => relative(root, file));
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name)) : join(folder, entry.name)));
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
    // EPERM: the process runs as another user.
    return error.code === 'EPERM';
  }
}
