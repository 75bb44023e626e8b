/**
 * Packages that package.json lists and no file uses, and packages that a file imports and package.json does not list: npm may install
 * another version of those, or none.
 *
 *   node scripts/packages.mjs
 */
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { importsOf, withoutComments } from './imports.mjs';
import { root } from './run.mjs';

/** Folders with code, by the folder of the package.json that lists what they import. The console also has what the root lists. */
const folders = { '.': ['src', 'test', 'bench', 'scripts', 'examples', 'bin'], console: ['console'] };
/** A package of its own, which `npm run test:clients` installs. */
const elsewhere = ['test/clients'];

/** Packages that are used without their name. */
const unnamed = ['@types/node', 'oxlint-tsgolint']; // the second one by `oxlint --type-aware`
/** Packages in code that is text for this file: programs for users, and for apps that tests install. */
const quoted = {
  'console/src/sessions/commands.ts': ['playwright'],
  'test/exports.test.ts': ['four', '@nine/nine'],
  'test/support/logins/apps/npm.ts': ['bcryptjs'],
};

/** Each fault as a sentence. */
export function packageFaults(base, places = folders) {
  const code = new Map();
  for (const [place, names] of Object.entries(places)) {
    const files = [...(place === '.' ? filesIn(base) : []), ...names.flatMap((name) => filesBelow(base, name))];
    for (const file of files) code.set(file, { place, text: withoutComments(readFileSync(join(base, file), 'utf8')) });
  }
  const listed = new Map(Object.keys(places).map((place) => [place, listedIn(base, place)]));
  const faults = [];
  for (const [file, { place, text }] of code) {
    const known = [...listed.get('.'), ...listed.get(place), ...(quoted[file] ?? [])];
    const imported = new Set(importsOf(text).flatMap(({ specifier }) => packageOf(specifier) ?? []));
    for (const name of imported)
      if (!known.includes(name) && !known.includes(`@types/${name}`))
        faults.push(`${file}: imports ${name}, which ${join(place, 'package.json')} does not list. Add it there.`);
  }
  // A name in quotes or in a path is a use, too: of createRequire, of a program, of a file.
  const all = [...code.values()].map(({ text }) => text).join('\n');
  const isUsed = (name) => new RegExp(`['"\`/]${name.replaceAll('.', '\\.')}['"\`/]`).test(all);
  for (const [place, names] of listed)
    for (const name of names)
      if (!unnamed.includes(name) && !isUsed(name.replace(/^@types\//, '')))
        faults.push(`${join(place, 'package.json')}: no file uses ${name}. Remove it.`);
  return faults;
}

function packageOf(specifier) {
  if (!/^(@[\w.-]+\/)?[a-z][\w.-]*(\/|$)/.test(specifier) || specifier.startsWith('node:')) return undefined;
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0];
  return builtinModules.includes(name) ? undefined : name;
}

function listedIn(base, place) {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(base, place, 'package.json'), 'utf8'));
  return Object.keys({ ...dependencies, ...devDependencies });
}

const isCode = (name) => /\.(ts|tsx|mts|mjs|cjs|js|css)$/.test(name);
const filesIn = (base) => readdirSync(base).filter(isCode);

function filesBelow(base, place) {
  return readdirSync(join(base, place), { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && name !== 'dist' && !elsewhere.includes(join(place, name)))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(base, join(place, entry.name)) : join(place, entry.name)))
    .filter(isCode);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const found = packageFaults(root);
  for (const sentence of found) console.log(sentence);
  process.exitCode = found.length > 0 ? 1 : 0;
}
