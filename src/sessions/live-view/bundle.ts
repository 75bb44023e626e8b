import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { look } from '../../lib/look.ts';
import { webFile } from '../../lib/web-files.ts';

/** One file of the page, as it is and compressed. Its name contains a hash of its content, so a browser may keep it for ever. */
interface Bundle {
  readonly name: string;
  readonly type: string;
  readonly plain: Buffer;
  readonly br: Buffer;
  readonly gzip: Buffer;
}

/** What the page consists of: the styles, and the script of the engine that it shows. */
export type BundleKind = 'style' | ViewKind;
export type ViewKind = 'display' | 'screencast';

/** A viewer of a headless session does not load noVNC: each engine has a script of its own. */
export async function makeBundles(): Promise<ReadonlyMap<BundleKind, Bundle>> {
  const made = await Promise.all([bundleOf('style', look('dark')), bundleOf('screencast'), bundleOf('display')]);
  return new Map(made);
}

async function bundleOf(kind: BundleKind, before = ''): Promise<[BundleKind, Bundle]> {
  const ending = kind === 'style' ? 'css' : 'js';
  const plain = Buffer.concat([Buffer.from(before), webFile(`sessions/live-view/web/${kind}.${ending}`)]);
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }), // 11 takes ten times as long for 5 %
    promisify(gzip)(plain, { level: 9 }),
  ]);
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 12);
  const type = `${kind === 'style' ? 'text/css' : 'text/javascript'}; charset=utf-8`;
  return [kind, { name: `${kind}.${hash}.${ending}`, type, plain, br, gzip: zipped }];
}
