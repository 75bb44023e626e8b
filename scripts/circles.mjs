/**
 * Circular imports of the service and of the console: every kind of import counts, those of types and those of `import()` too. In a circle no
 * file can be understood without all others of it.
 *
 *   node scripts/circles.mjs [folder…]
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { importsOf, withoutComments } from './imports.mjs';
import { root } from './run.mjs';

/** Each set of files below `folder` that import each other, as a sentence with one circle of it. */
export function circles(folder) {
  const imports = graphOf(folder);
  const sentence = (files) => {
    const [circle] = files
      .map((file) => wayBack(file, imports, new Set(files)))
      .sort((one, other) => one.length - other.length);
    const more = files.length > circle.length - 1 ? ` (${files.length} files import each other)` : '';
    return `${circle.join(' → ')}${more}: move what both need into a file of its own.`;
  };
  return tangles(imports).map(sentence);
}

/** Each file with those that it imports, by their paths below `folder`. */
function graphOf(folder) {
  const files = filesBelow(folder);
  const known = new Set(files);
  return new Map(
    files.map((file) => {
      const targets = importsOf(withoutComments(readFileSync(join(folder, file), 'utf8')))
        .filter(({ specifier }) => specifier.startsWith('.'))
        .map(({ specifier }) => relative(folder, resolve(folder, dirname(file), specifier)));
      return [file, targets.filter((target) => known.has(target))];
    }),
  );
}

/** The sets of two or more files of which each reaches all others, and files that import themselves (Tarjan's algorithm). */
function tangles(imports) {
  const order = new Map();
  const lowest = new Map();
  const stack = [];
  const found = [];
  const visit = (file) => {
    order.set(file, order.size);
    lowest.set(file, order.get(file));
    stack.push(file);
    for (const target of imports.get(file)) {
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file), lowest.get(target)));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const files = stack.splice(stack.indexOf(file));
    if (files.length > 1 || imports.get(file).includes(file)) found.push(files);
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return found;
}

/** The shortest way from a file through others of its set back to it. */
function wayBack(file, imports, within) {
  const ways = [[file]];
  const seen = new Set();
  for (const way of ways) {
    for (const target of imports.get(way.at(-1))) {
      if (target === file) return [...way, file];
      if (!within.has(target) || seen.has(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  throw new Error(`${file} is in no circle`);
}

function filesBelow(folder, place = '') {
  return readdirSync(join(folder, place), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(folder, join(place, entry.name)) : join(place, entry.name)))
    .filter((file) => /(?<!\.d|\.test)\.tsx?$/.test(file));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folders = process.argv.length > 2 ? process.argv.slice(2) : ['src', 'console/src'];
  const found = folders
    .map((name) => resolve(root, name))
    .flatMap((folder) => (existsSync(folder) ? circles(folder) : [`There is no folder ${folder}.`]));
  for (const sentence of found) console.log(sentence);
  process.exitCode = found.length > 0 ? 1 : 0;
}
