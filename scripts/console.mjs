import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { listen, root } from './run.mjs';
import { Stop } from './say.mjs';

/** What a browser loads for the first screen, compressed, at most. */
const FIRST_SCREEN_KB = 300;
const workspace = join(root, 'console');

/**
 * Builds the console into `folder`, or copies it from `last` when that was built from the same sources. The files get compressed copies
 * here, so that the service compresses nothing while it runs.
 */
export async function buildConsole({ folder, last, wanted }) {
  const stamp = join(last, '.built-from');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return cpSync(last, folder, { recursive: true });

  mkdirSync(folder, { recursive: true });
  const { code, output } = await listen(
    process.execPath,
    [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn'],
    { cwd: workspace },
  );
  if (code !== 0) throw new Stop(`${output}\n\nThe console could not be built; the reasons are above.`);
  const assets = join(folder, 'assets');
  const sizes = new Map(await Promise.all(readdirSync(assets).map((name) => compress(assets, name))));
  refuseLarge(JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8')), sizes);
  rmSync(join(folder, '.vite'), { recursive: true });
  writeFileSync(join(folder, '.built-from'), wanted);
}

async function compress(folder, name) {
  const bytes = readFileSync(join(folder, name));
  // 9 of 11: the last two steps take five times as long for a hundredth of the size.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: 9 }),
  ]);
  writeFileSync(join(folder, `${name}.br`), br);
  writeFileSync(join(folder, `${name}.gz`), gz);
  return [`assets/${name}`, gz.length];
}

/** The first screen is the page's entry with all that it imports at once. Counted as gzip, which is the larger of the two. */
function refuseLarge(manifest, sizes) {
  const files = new Set();
  const visit = (key) => {
    const { file, css = [], imports = [] } = manifest[key];
    if (files.has(file)) return;
    for (const one of [file, ...css]) files.add(one);
    imports.forEach(visit);
  };
  visit('index.html');
  const bytes = [...files].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0);
  if (process.env.CORRAL_CONSOLE_SIZES)
    console.log(`The console's first screen: ${Math.round(bytes / 1024)} KB compressed.`);
  if (bytes > FIRST_SCREEN_KB * 1024)
    throw new Stop(
      `The console's first screen is ${Math.round(bytes / 1024)} KB compressed, more than ${FIRST_SCREEN_KB} KB. Load the other screens with a dynamic import().`,
    );
}

/**
 * The types of the API, of openapi.json. They are made when they are needed and not committed: every change of a route would change them.
 */
export async function writeApiTypes() {
  const file = join(workspace, 'src/api/schema.gen.d.ts');
  const source = readFileSync(join(root, 'openapi.json'), 'utf8');
  const maker = readFileSync(fileURLToPath(import.meta.url));
  const mark = `// of openapi.json ${createHash('sha256').update(source).update(maker).digest('hex')}\n`;
  if (existsSync(file) && readFileSync(file, 'utf8').startsWith(mark)) return { code: 0, output: '' };
  const asSent = `${file}.json`;
  writeFileSync(asSent, JSON.stringify(withDefaultsLeftOut(JSON.parse(source))));
  const program = join(workspace, 'node_modules/openapi-typescript/bin/cli.js');
  const options = ['--output', file, '--root-types', '--root-types-no-schema-prefix', '--default-non-nullable=false'];
  const made = await listen(process.execPath, [program, asSent, ...options]);
  rmSync(asSent);
  if (made.code === 0) writeFileSync(file, mark + readFileSync(file, 'utf8'));
  return made;
}

/**
 * In the reference, fields with a default are always present, as the service reads them. A client may leave them out. Rules without a
 * schema ("one of these two fields") and discriminators are removed: the generator creates wrong types of them.
 */
function withDefaultsLeftOut(node) {
  if (Array.isArray(node)) return node.map(withDefaultsLeftOut);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withDefaultsLeftOut(value)]));
  if (Array.isArray(copy.required))
    copy.required = copy.required.filter((name) => copy.properties?.[name]?.default === undefined);
  delete copy.discriminator;
  for (const rule of ['anyOf', 'oneOf', 'allOf'])
    if (copy.properties && copy[rule]?.every((one) => !one.$ref && !one.properties)) delete copy[rule];
  delete copy.not;
  if (copy.in === 'query' && copy.schema?.default !== undefined) copy.required = false;
  return copy;
}
