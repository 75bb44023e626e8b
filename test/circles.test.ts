import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { circles } from '../scripts/circles.mjs';

const files: Record<string, string> = {
  'rooms/a.ts': "import type { B } from './b.ts';\nimport { helper } from '../lib/helper.ts';",
  'rooms/b.ts': "export const later = () => import('./c.tsx');",
  'rooms/c.tsx': "// import { d } from './d.ts';\nexport { a } from './a.ts';",
  'rooms/d.ts': "import { c } from './c.tsx';",
  'rooms/b.test.ts': "import './c.tsx';",
  'lib/helper.ts': "import 'node:fs';",
};

test('a circle through a type, a later import and an export is found, and nothing else', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'corral-circles-'));
  try {
    for (const [name, code] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), code);
    }
    expect(circles(folder)).toEqual([
      expect.stringMatching(/^rooms\/(\w)\.tsx? → .* → rooms\/\1\.tsx?: move what both need/),
    ]);
    await writeFile(join(folder, 'rooms/c.tsx'), '');
    expect(circles(folder)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
