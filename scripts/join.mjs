import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from './run.mjs';
import { Stop } from './say.mjs';

/**
 * Packages that are joined with the service. The others stay packages: they have binaries or files beside their code, or they are loaded
 * only when they are used. A package of CommonJS that is loaded by `import()` has its `default` alone here, and no names.
 */
const joinedPackages = [
  '@fastify/fast-json-stringify-compiler',
  '@fastify/multipart',
  '@fastify/proxy-addr',
  '@fastify/swagger',
  'ajv',
  'ajv-formats',
  'fastify',
  'ipaddr.js',
  'marked',
  'otpauth',
  'pg',
  'prom-client',
  'typebox',
  'undici',
  'ws',
  'yauzl',
  'yazl',
];
/** What joined packages load at run time if it is there. The service gives Fastify a logger of its own. */
const notJoined = ['pino', 'pg-native'];

const src = join(root, 'src');
const named = (list, path) => list.some((name) => path === name || path.startsWith(`${name}/`));

/**
 * Joins the modules of the service and most of its packages to a few files in `joined/` of a build: a start took 1.3 seconds of processor
 * time for its thousand modules one by one, and takes a third of that. `main.js` of the build leads there. Other programs (the command line,
 * programs inside sessions) run from their own files, which are not joined.
 *
 * `joined/modules/` has a file for each module of the service that exports the same. With these, tests import the joined service
 * as one graph of modules.
 */
export async function joinService(folder) {
  const esbuild = await import('esbuild'); // not at the top: a fresh clone has no packages yet
  try {
    const modules = await modulesOf(esbuild, join(src, 'main.ts'));
    const exported = await exportsOf(esbuild, modules);
    const outdir = join(folder, 'joined');
    const { warnings } = await esbuild.build({
      ...options,
      entryPoints: { main: join(src, 'main.ts'), all: 'all-modules' },
      outdir,
      splitting: true,
      sourcemap: true,
      banner: { js: banner },
      define: ownPlace,
      plugins: [externals(joinedPackages), placed(folder, outdir), allModules(exported)],
    });
    // A package that changed its ways, for example to a `require` of a computed name.
    if (warnings[0]) throw new Stop(`The service cannot be joined: ${warnings[0].text}`);
    writeFileSync(join(folder, 'main.js'), "import './joined/main.js';\n");
    rmSync(join(folder, 'main.js.map'));
    for (const [path, { names, from }] of exported) {
      const file = join(outdir, 'modules', path.replace(/\.ts$/, '.js'));
      const all = relative(dirname(file), join(outdir, 'all.js'));
      const list = names.map((name) => `${nameIn(path, name)} as ${name}`).join(', ');
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, [`export { ${list} } from '${all}';`, ...from, ''].join('\n'));
    }
  } finally {
    await esbuild.stop(); // it is a process, which would stay
  }
}

/**
 * Joins the command line to one file, `cli/corral.cjs`. A person waits for each module that is read, and Node takes longer to read modules
 * than CommonJS. The operator's half runs the service's code, and is read from its own files when it is called.
 */
export async function joinCommand(folder) {
  const esbuild = await import('esbuild');
  try {
    const outdir = join(folder, 'cli');
    await esbuild.build({
      ...options,
      format: 'cjs',
      entryPoints: [join(src, 'cli/main.ts')],
      outfile: join(outdir, 'corral.cjs'),
      sourcemap: true,
      minifyWhitespace: true, // half of the file, which is read and parsed each time
      banner: { js: commandBanner },
      define: ownPlace,
      plugins: [operators, externals(['commander']), placed(folder, outdir)],
    });
  } finally {
    await esbuild.stop();
  }
}

const options = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'silent',
  absWorkingDir: root,
};

/** Packages of CommonJS need `require`, which modules do not have. */
const banner = [
  "import { createRequire as corralCreateRequire } from 'node:module';",
  "import { fileURLToPath as corralPathOf } from 'node:url';",
  'const require = corralCreateRequire(import.meta.url);',
  'const corralJoinedUrl = import.meta.url;',
].join('\n');

const commandBanner = [
  "const { fileURLToPath: corralPathOf, pathToFileURL: corralUrlOf } = require('node:url');",
  'const corralJoinedUrl = corralUrlOf(__filename).href;',
].join('\n');

/** See `placed`: a module of src/ finds its files beside the module that tsc has made of it. */
const ownPlace = { 'import.meta.url': 'corralModuleUrl', 'import.meta.dirname': 'corralModuleDir' };

const operators = {
  name: 'operators',
  setup({ onResolve }) {
    onResolve({ filter: /\/operator\/.*\.ts$/ }, ({ path }) => ({
      path: path.replace(/^.*(\/operator\/.*)\.ts$/, '.$1.js'),
      external: true,
    }));
  },
};

const externals = (packages) => ({
  name: 'externals',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      if (kind === 'entry-point') return undefined;
      if (path.startsWith('node:')) return { path, external: true };
      const ours = importer.startsWith(`${src}/`);
      const joined = ours ? named(packages, path) : !named(notJoined, path);
      return joined ? undefined : { path, external: true };
    });
  },
});

/** Gives modules that use their own path the path in the build. Packages are excluded: they may be installed anywhere. */
const placed = (folder, outdir) => ({
  name: 'placed',
  setup({ onLoad }) {
    onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => {
      const code = readFileSync(path, 'utf8');
      if (!code.includes('import.meta.')) return undefined;
      if (!path.startsWith(`${src}/`)) return { errors: [{ text: `${relative(root, path)} asks for its place.` }] };
      const built = join(folder, relative(src, path).replace(/\.ts$/, '.js'));
      const url = `new URL('${relative(outdir, built)}', corralJoinedUrl)`;
      const dir = "corralPathOf(new URL('.', corralModuleUrl)).slice(0, -1)";
      // In front of the first line, so that the lines of the source map stay right.
      return {
        contents: `const corralModuleUrl = ${url}.href, corralModuleDir = ${dir}; ${code}`,
        loader: 'ts',
      };
    });
  },
});

/** The paths below src/ of the modules that a module imports, directly or not, and of itself. Dynamic imports are not included. */
async function modulesOf(esbuild, entry) {
  const { metafile } = await esbuild.build({
    ...options,
    entryPoints: [entry],
    metafile: true,
    write: false,
    packages: 'external',
  });
  const found = new Set([relative(root, entry)]);
  for (const path of found)
    for (const { path: other, kind, external } of metafile.inputs[path].imports)
      if (!external && kind === 'import-statement') found.add(other);
  return [...found].map((path) => relative('src', path)).filter((path) => path !== relative(src, entry));
}

/** What each module exports: names, and the other modules of which it exports everything. */
async function exportsOf(esbuild, modules) {
  const { metafile } = await esbuild.build({
    ...options,
    bundle: false,
    entryPoints: modules.map((path) => join('src', path)),
    outdir: 'exports',
    metafile: true,
    write: false,
  });
  return new Map(
    Object.values(metafile.outputs).map(({ entryPoint, exports: names }) => {
      const code = readFileSync(join(root, entryPoint), 'utf8');
      const from = [...code.matchAll(/^export \* from '(\.[^']+)\.ts';$/gm)].map(
        ([, at]) => `export * from '${at}.js';`,
      );
      return [relative('src', entryPoint), { names, from }];
    }),
  );
}

const nameIn = (path, name) => `${path.replace(/\.ts$/, '').replaceAll(/[^a-zA-Z0-9]/g, '_')}__${name}`;

/** One module that exports all exports of the modules, each under a separate name. */
const allModules = (exported) => ({
  name: 'all-modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^all-modules$/ }, () => ({ path: 'all-modules', namespace: 'corral' }));
    onLoad({ filter: /.*/, namespace: 'corral' }, () => ({
      contents: [...exported]
        .map(([path, { names }]) => {
          const list = names.map((name) => `${name} as ${nameIn(path, name)}`).join(', ');
          return `export { ${list} } from './${path}';`;
        })
        .join('\n'),
      resolveDir: src,
    }));
  },
});
