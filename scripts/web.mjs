import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root } from './run.mjs';
import { Stop } from './say.mjs';

/** The files that pages of the service load. Each is a path in the build; its source has the same path in src/. */
const files = [
  'docs/web/start.js',
  'docs/web/style.css',
  'logins/hosted/web/page.js',
  'logins/hosted/web/style.css',
  'sessions/live-view/web/display.js',
  'sessions/live-view/web/screencast.js',
  'sessions/live-view/web/style.css',
];

/**
 * Scripts that the service runs in pages of sessions: in the build, each is an expression whose value has the exports of the module. The
 * service reads it as text and evaluates `${text}.name(…)` in an isolated world.
 */
const expressions = [
  'chromium/forms/web/page.js',
  'chromium/pages/web/page.js',
  'chromium/telemetry/web/captcha.js',
  'chromium/telemetry/web/interaction.js',
];

/**
 * Bundles the browser code of src/ into a build. Browsers load one file instead of 68 modules, each of which they find only when the one
 * before has arrived; and the service needs no bundler when it starts.
 */
export async function bundleWeb(folder) {
  const esbuild = await import('esbuild'); // not at the top: a fresh clone has no packages yet
  const bundle = async (options) => {
    const { outputFiles, warnings } = await esbuild.build({ ...common, ...options });
    if (warnings[0]) throw new Stop(`The browser code does not bundle: ${warnings[0].text}`); // for example an import of a name that is not exported
    return outputFiles[0]?.text ?? '';
  };
  const write = (file, text) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  try {
    await Promise.all([
      ...files.map(async (file) => write(file, await bundle({ entryPoints: [sourceOf(file)], format: 'esm' }))),
      ...expressions.map(async (file) => {
        const code = await bundle({ entryPoints: [sourceOf(file)], format: 'iife', globalName: 'exported' });
        write(file, `(() => { ${code} return exported; })()`);
      }),
    ]);
  } finally {
    await esbuild.stop(); // it is a process, which would stay
  }
}

const sourceOf = (file) => join(root, 'src', file.replace(/\.js$/, '.ts'));

/** The package of noVNC exports its main file only. Its other modules are imported by path. */
const novnc = {
  name: 'novnc',
  setup({ onResolve }) {
    const main = createRequire(import.meta.url).resolve('@novnc/novnc'); // core/rfb.js
    onResolve({ filter: /^@novnc\/novnc\/core\// }, ({ path }) => ({
      path: join(dirname(main), path.slice('@novnc/novnc/core/'.length)),
    }));
  },
};

const common = {
  bundle: true,
  minify: true,
  platform: 'browser',
  target: 'es2022',
  write: false,
  logLevel: 'silent',
  absWorkingDir: root,
  plugins: [novnc],
};
