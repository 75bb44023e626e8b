import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadExports } from '../scripts/exports.mjs';
import { packageFaults } from '../scripts/packages.mjs';

const files: Record<string, string> = {
  'src/a.ts': `export const one = 1;
export type Two = 2;
export async function three() {}
export interface Four {}
const five = 5, six = 6;
export { five, six as seven };`,
  'src/whole.ts': 'export const all = 1;',
  'src/later.ts': 'export const eight = 8;',
  'src/b.ts': `import { one, type Two } from './a.ts';
import * as whole from './whole.ts';
// import { three } from './a.ts';
export const load = () => import('./later.ts');`,
  'test/b.test.ts': "import { load } from '../src/b.ts';\nimport { seven as mine } from '../src/a.ts';",
};

async function folderOf(files: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'corral-exports-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [name, code] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), code);
  }
  return folder;
}

test('an export that no other file imports is found, and no other', async () => {
  const folder = await folderOf(files);
  const found = deadExports(folder, ['src', 'test']).map((sentence) => sentence.split('. ')[0]);
  expect(found).toEqual(['three', 'Four', 'five'].map((name) => `src/a.ts: no other file imports ${name}`));
});

test('a package that no file uses is found, and one that is not listed, and no other', async () => {
  const folder = await folderOf({
    'package.json': JSON.stringify({
      dependencies: { one: '1', '@two/two': '1', three: '1' },
      devDependencies: { '@types/one': '1', '@types/five': '1', six: '1' },
    }),
    'console/package.json': JSON.stringify({ devDependencies: { four: '1', seven: '1' } }),
    'src/a.ts': `import { a } from 'one';
import fs, { type Stats } from 'fs';
import { b } from 'four';
// import 'three';
const c = createRequire(import.meta.url)('@two/two/sub.js');
const six = join(root, 'node_modules/six/cli.js');`,
    'src/b.ts':
      "import './a.ts';\nimport type { F } from 'five';\nexport const load = () => import('@nine/nine/x.js');",
    'console/src/a.tsx': "import { a } from 'one';\nimport { d } from 'four';",
  });
  expect(packageFaults(folder, { '.': ['src'], console: ['console'] })).toEqual([
    'src/a.ts: imports four, which package.json does not list. Add it there.',
    'src/b.ts: imports @nine/nine, which package.json does not list. Add it there.',
    'package.json: no file uses three. Remove it.',
    'console/package.json: no file uses seven. Remove it.',
  ]);
});
