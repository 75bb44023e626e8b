import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { look } from '../../lib/look.ts';
import { build, stop, type Plugin } from 'esbuild';

/** One file of the page, as it is and compressed. Its name contains a hash of its content, so a browser may keep it for ever. */
export interface Bundle {
  readonly name: string;
  readonly type: string;
  readonly plain: Buffer;
  readonly br: Buffer;
  readonly gzip: Buffer;
}

/** What the page consists of: the styles, and the script of the engine that it shows. */
export type BundleKind = 'style' | ViewKind;
export type ViewKind = 'display' | 'screencast';

const here = import.meta.dirname;
const noVnc = dirname(dirname(createRequire(import.meta.url).resolve('@novnc/novnc'))); // it resolves to core/rfb.js

/** The package of noVNC exports its main file only; its other modules are imported by path. */
const novncByPath: Plugin = {
  name: 'novnc',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/novnc\// }, ({ path }) => ({ path: join(noVnc, path.slice('./novnc/'.length)) }));
  },
};

const NOVNC = '/*! Contains noVNC, Copyright The noVNC authors, MPL 2.0: https://github.com/novnc/noVNC */';

/**
 * Puts each part of the page into one file. As separate modules the page took 68 requests, each found only when the one
 * before had arrived. Made when the service starts, from the same files in the package and in the sources.
 */
export async function makeBundles(): Promise<ReadonlyMap<BundleKind, Bundle>> {
  try {
    const made = await Promise.all([
      bundleOf('style', `@import './style.css';\n@import './overlays.css';\n${look('dark')}`),
      bundleOf('screencast', script('screencast')),
      bundleOf('display', script('display'), NOVNC),
    ]);
    return new Map(made);
  } finally {
    await stop(); // esbuild is a process, which would stay
  }
}

const script = (kind: ViewKind) =>
  `import { view } from './view.js'; import { ${kind} } from './${kind}.js'; view(${kind});`;

async function bundleOf(kind: BundleKind, contents: string, banner = ''): Promise<[BundleKind, Bundle]> {
  const loader = kind === 'style' ? 'css' : 'js';
  const { outputFiles, warnings } = await build({
    stdin: { contents, loader, resolveDir: here, sourcefile: `entry-of-${kind}.${loader}` },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
    banner: { [loader]: banner },
    plugins: [novncByPath],
  });
  if (warnings[0]) throw new Error(`The live view's ${kind} does not bundle: ${warnings[0].text}`); // a name that is not exported is a warning
  const plain = Buffer.from(outputFiles[0]!.contents);
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }), // 11 takes ten times as long for 5 %
    promisify(gzip)(plain, { level: 9 }),
  ]);
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 12);
  const type = `${kind === 'style' ? 'text/css' : 'text/javascript'}; charset=utf-8`;
  return [kind, { name: `${kind}.${hash}.${loader}`, type, plain, br, gzip: zipped }];
}
