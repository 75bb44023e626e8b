import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, readFile, readdir, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compiled, copy, fingerprint, nodeIsEverywhere, packagesOf, put, sourcesIn } from '../guest/toolbox.ts';

/**
 * The read-only directory that builds and workers see: the programs that run in their sandboxes, the packages these use (esbuild among
 * them), and Node with npm where they are not in /usr. A copy, for the same reasons as the toolbox of sessions.
 */
export interface Workbench {
  readonly dir: string;
  /** Resolves when it is complete. It is filled when it is first needed: most services never build anything. */
  ready(): Promise<void>;
  /** The command of a program of `inside/`, for a workbench that is mounted at `at`. */
  program(at: string, name: string): string[];
  /** Where npm's program is then. */
  npm(at: string): string;
  /** The environment with which Node and git trust the same certificates as this machine and this service, as arguments of `env`. */
  trusting(at: string): string[];
}

const PACKAGES = ['esbuild', 'undici', 'yauzl'];
const UNUSED = /\.(d\.ts|d\.mts|md|map)$|\/docs$/;

const SYSTEM_CERTIFICATES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt'];

const here = dirname(fileURLToPath(import.meta.url));

/** `trusted` is a file with certificates that the operator configured as trusted; empty: none. */
export function openWorkbench(dir: string, trusted = ''): Workbench {
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  const npm = findNpm();
  let filled: Promise<void> | undefined;
  return {
    dir,
    ready() {
      filled ??= fill(dir, npm, certificatesOf(trusted)).catch((error: Error) => {
        filled = undefined;
        throw error;
      });
      return filled;
    },
    program: (at, name) => [
      nodeIsEverywhere() ? process.execPath : join(at, 'bin/node'),
      join(at, 'inside', `${name}.js`),
    ],
    trusting: (at) =>
      existsSync(join(dir, 'ca.pem'))
        ? ['NODE_EXTRA_CA_CERTS', 'GIT_SSL_CAINFO'].map((name) => `${name}=${join(at, 'ca.pem')}`)
        : [],
    npm: (at) => (npm?.startsWith('/usr/') ? join(npm, 'bin/npm-cli.js') : join(at, 'npm/bin/npm-cli.js')),
  };
}

/** Certificates of the system, and the operator's own: the service, its registry or a repository may have one of these. */
function certificatesOf(own: string): string {
  const system = SYSTEM_CERTIFICATES.find((path) => existsSync(path));
  const readable = [system, own].filter((path) => path !== undefined && path !== '' && existsSync(path)) as string[];
  return readable.map((path) => readFileSync(path, 'utf8')).join('\n');
}

/** npm comes with Node: in `lib` beside its `bin`, or where a distribution has it. */
function findNpm(): string | undefined {
  const places = [
    join(dirname(process.execPath), '../lib/node_modules/npm'),
    '/usr/lib/node_modules/npm',
    '/usr/share/nodejs/npm',
    '/usr/local/lib/node_modules/npm',
  ];
  return places.find((path) => existsSync(join(path, 'bin/npm-cli.js')));
}

async function fill(dir: string, npm: string | undefined, trusted: string): Promise<void> {
  await chmod(dir, 0o755); // independent of the umask
  if (npm === undefined) throw new Error('There is no npm beside Node: install the package npm.');
  const sources = await sourcesIn(here, ['inside']);
  const packages = await packagesOf(PACKAGES, here);
  const stamp = join(dir, 'made-of');
  const wanted = fingerprint([
    process.execPath,
    process.version,
    npm,
    trusted,
    ...sources.flat(),
    ...[...packages].flat(),
  ]);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return;

  for (const name of await readdir(dir)) await rm(join(dir, name), { recursive: true, force: true });
  await put(join(dir, 'package.json'), '{ "type": "module" }\n');
  for (const [name, code] of sources.map(compiled)) await put(join(dir, name), code);
  for (const [name, from] of packages) await copy(from, join(dir, 'node_modules', name), UNUSED);
  if (trusted !== '') await put(join(dir, 'ca.pem'), trusted);
  if (!npm.startsWith('/usr/')) await copy(await realpath(npm), join(dir, 'npm'), UNUSED);
  if (!nodeIsEverywhere()) {
    await mkdir(join(dir, 'bin'));
    await copyFile(process.execPath, join(dir, 'bin/node'));
    await chmod(join(dir, 'bin/node'), 0o755);
  }
  await put(stamp, wanted);
}
