import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const fromHere = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const fine: Record<string, string[]> = {
  'a promise that is awaited at once': ['const x = ask();', 'await x;', 'await other();'],
  'two promises that are awaited together': [
    'const [x, y] = [1, ask()];',
    'const z = ask();',
    'await Promise.all([y, z]);',
  ],
  'a promise with a handler from the start': ['const x = started(ask());', 'await other();', 'await x;'],
  'a promise whose rejection is a value': ['const x = ask().catch(() => {});', 'await other();', 'await x;'],
  'a promise that gets a handler before the next await': [
    'const x = ask();',
    'x.catch(() => {});',
    'await other();',
    'await x;',
  ],
  'a value that is not awaited': ['const x = ask();', 'await other();', 'use(x);'],
  'a promise that cannot reject': ['const x = new Promise((resolve) => later(resolve));', 'await other();', 'await x;'],
  'a promise that another function awaits': ['const x = ask();', 'keep(x);', 'await other();', 'await x;'],
};

const late: Record<string, string[]> = {
  'a promise that is awaited after another': ['const x = ask();', 'await other();', 'await x;'],
  'a promise that is awaited with others, later': [
    'const x = ask();',
    'await other();',
    'await Promise.all([x, y()]);',
  ],
  'promises that are awaited together, later': [
    'const all = names.map(ask);',
    'await other();',
    'await Promise.all(all);',
  ],
  'a promise with a step, and no handler': ['const x = ask().then(read);', 'await other();', 'await x;'],
  'a promise that is started if it is needed': ['const x = needed ? ask() : undefined;', 'await other();', 'await x;'],
  'a promise that gets its handler after another await': [
    'const x = ask();',
    'await other();',
    'x.catch(() => {});',
    'await x;',
  ],
  'a promise before a loop that waits': ['const x = ask();', 'for await (const y of others()) use(y);', 'await x;'],
};

/** The cases that the rule refuses, by their names. Each case is a file. */
function refused(cases: Record<string, string[]>): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'corral-late-awaits-'));
  try {
    const names = Object.keys(cases);
    for (const [at, name] of names.entries())
      writeFileSync(join(dir, `${at}.ts`), `async function work() {\n${cases[name]!.join('\n')}\n}\n`);
    const config = join(dir, 'config.json');
    const jsPlugins = [fromHere('../scripts/lint/late-awaits.mjs')];
    const categories = { correctness: 'off' };
    writeFileSync(config, JSON.stringify({ jsPlugins, categories, rules: { 'corral/late-awaits': 'error' } }));
    const oxlint = fromHere('../node_modules/oxlint/bin/oxlint');
    const { stdout } = spawnSync(process.execPath, [oxlint, '--config', config, '--format', 'json', dir], {
      encoding: 'utf8',
    });
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string }[] };
    const found = diagnostics.map(({ filename }) => Number(/(\d+)\.ts$/.exec(filename)![1]));
    return found.sort((a, b) => a - b).map((at) => names[at]!);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('a promise that is awaited later than it was started is refused, unless it has a handler from the start', () => {
  expect(refused({ ...fine, ...late })).toEqual(Object.keys(late));
});
