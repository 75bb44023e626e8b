import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadExports } from '../scripts/exports.mjs';

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

test('an export that no other file imports is found, and no other', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'corral-exports-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [name, code] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), code);
  }
  const found = deadExports(folder, ['src', 'test']).map((sentence) => sentence.split('. ')[0]);
  expect(found).toEqual(['three', 'Four', 'five'].map((name) => `src/a.ts: no other file imports ${name}`));
});
