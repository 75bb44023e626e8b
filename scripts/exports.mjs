/**
 * Exports of the service and of the console that no other file imports. They suggest a use that
 * there is not, and keep code that nothing needs.
 *
 *   node scripts/exports.mjs
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { withoutComments } from './imports.mjs';
import { root } from './run.mjs';

/** Folders whose files import from others; of `checked`, the exports are checked. */
const folders = ['src', 'console', 'test', 'bench', 'scripts', 'examples'];
const checked = /^(src|console\/src)\//;

/** Files whose exports are called by name. */
const called = [
  'src/chromium/forms/web/page.ts', // in pages, by world-calls.ts
  'src/chromium/guest/inside/page-tools.ts', // by runner.ts, which imports it only where Playwright is installed
  'src/chromium/pages/web/page.ts', // in pages, by page-script.ts
  'src/chromium/telemetry/web/captcha.ts', // in pages, by captcha.ts
  'src/chromium/telemetry/web/interaction.ts', // in pages, by interaction.ts
  'src/cli/does/typescript-hooks.ts', // by Node, as hooks for modules
];

/** Each export without an import, as a sentence. */
export function deadExports(base, names = folders) {
  const files = names.flatMap((name) => filesBelow(base, name));
  const code = new Map(files.map((file) => [file, withoutComments(readFileSync(join(base, file), 'utf8'))]));
  const used = new Map(files.map((file) => [file, new Set()]));
  for (const [file, text] of code)
    for (const { specifier, names: imported } of importedNames(text)) {
      const target = relative(base, resolve(base, dirname(file), specifier));
      for (const name of imported) used.get(target)?.add(name);
    }
  return files
    .filter((file) => checked.test(file) && !file.includes('.test.') && !called.includes(file))
    .flatMap((file) => {
      const names = used.get(file);
      if (names.has('*')) return [];
      return exportedNames(code.get(file))
        .filter((name) => !names.has(name))
        .map((name) => `${file}: no other file imports ${name}. Remove the export, or what it exports.`);
    });
}

/** The name `*` means all exports: of `import * as`, `export * from` and `import()`. */
function importedNames(code) {
  const statements = /^[ \t]*(?:import|export)\b(?:\s+type\b)?([^'"`;]*?)\bfrom\s*['"](\.[^'"]+)['"]/gm;
  const calls = /\b(?:import|importActual|mock)(?:<[^>]*>)?\(\s*['"](\.[^'"]+)['"]/g;
  const types = /\bimport\(['"](\.[^'"]+)['"]\)\.(\w+)/g;
  return [
    ...[...code.matchAll(statements)].map(([, clause, specifier]) => ({ specifier, names: namesOf(clause) })),
    ...[...code.matchAll(calls)].map(([, specifier]) => ({ specifier, names: ['*'] })),
    ...[...code.matchAll(types)].map(([, specifier, name]) => ({ specifier, names: [name] })),
  ];
}

function namesOf(clause) {
  const [, braces] = /\{([^}]*)\}/.exec(clause) ?? [];
  const before = clause.split('{')[0];
  const named = (braces ?? '').split(',').map(
    (part) =>
      part
        .trim()
        .replace(/^type\s+/, '')
        .split(/\s+as\s+/)[0],
  );
  return [...named.filter(Boolean), ...(before.includes('*') ? ['*'] : []), ...(/\w/.test(before) ? ['default'] : [])];
}

function exportedNames(code) {
  const declared =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;
  const lists = /^export (?:type )?\{([^}]*)\}/gm;
  const destructured = /^export const \{([^}]*)\}/gm;
  const last = (part) =>
    part
      .trim()
      .split(/\s+as\s+|\s*:\s*/)
      .at(-1)
      .replace(/^type\s+/, '');
  return [
    ...[...code.matchAll(declared)].map(([, name]) => name),
    ...[...code.matchAll(lists), ...code.matchAll(destructured)].flatMap(([, names]) =>
      names
        .split(',')
        .filter((part) => part.trim())
        .map(last),
    ),
  ];
}

function filesBelow(base, place) {
  return readdirSync(join(base, place), { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && name !== 'dist')
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(base, join(place, entry.name)) : join(place, entry.name)))
    .filter((file) => /(?<!\.d)\.(ts|tsx|mjs)$/.test(file));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const found = deadExports(root);
  for (const sentence of found) console.log(sentence);
  process.exitCode = found.length > 0 ? 1 : 0;
}
