/**
 * The regular expressions of src/ and console/src that may take more than linear time. One thread serves all tenants: 16 KiB of slashes stop it
 * for half a second when a search takes the square of their number. Tests are exempt.
 *
 *   node scripts/regexes.mjs [folder …]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync, Visitor } from 'vite';
import { whyNotLinear } from './linear-regex.mjs';
import { root } from './run.mjs';

/** An expression may stay as it is with this and a reason, at the end of its line or alone on the line above. */
const excuse = /\/\/ not linear: \S/;
const excuseAlone = /^\s*\/\/ not linear: \S/;

const instead =
  'use indexOf, split, a loop or a function of src/lib/text.ts, or anchor it with ^. If only this project chooses the text, or it is always ' +
  'short, give the reason at the line: // not linear: …';

/** Every regular expression of a source that may take more than linear time, as sentences. `file` is its name in them. */
export function slowRegexes(file, code) {
  const lines = code.split('\n');
  const found = [];
  for (const { start, source, flags } of regexesOf(file, code)) {
    const line = code.slice(0, start).split('\n').length;
    if (excuse.test(lines[line - 1]) || excuseAlone.test(lines[line - 2] ?? '')) continue;
    const report = (sentence) => found.push(`${file}:${line} ${sentence}`);
    if (source === undefined) {
      report(
        'builds a regular expression of what is not known here: build it of constants of this file, or give the reason why it is linear at the line: // not linear: …',
      );
      continue;
    }
    const why = whyNotLinear(source, flags);
    if (why) report(`has /${source}/${flags}, which is not linear, since ${why}: ${instead}`);
  }
  return found;
}

/** Literals, and expressions built of constants of the same file. */
function regexesOf(file, code) {
  const { program, errors } = parseSync(file, code);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const constants = new Map();
  const found = [];
  const built = ({ start, callee, arguments: [source, flags] }) => {
    if (callee.type === 'Identifier' && callee.name === 'RegExp')
      found.push({
        start,
        source: () => valueOf(source, constants),
        flags: () => (flags ? valueOf(flags, constants) : ''),
      });
  };
  new Visitor({
    VariableDeclarator({ id, init }) {
      // A name that is declared twice has no single value.
      if (id.type === 'Identifier') constants.set(id.name, constants.has(id.name) ? undefined : init);
    },
    Literal({ start, regex }) {
      if (regex) found.push({ start, source: () => regex.pattern, flags: () => regex.flags });
    },
    NewExpression: built,
    CallExpression: built,
  }).visit(program);
  return found.map(({ start, source, flags }) => {
    const known = flags();
    return { start, source: known === undefined ? undefined : source(), flags: known };
  });
}

/** The text that an expression always has, or undefined. */
function valueOf(node, constants) {
  const texts = (nodes) => {
    const all = nodes.map((each) => valueOf(each, constants));
    return all.includes(undefined) ? undefined : all;
  };
  const woven = ({ quasis, expressions }, kind) => {
    const between = texts(expressions);
    return between && quasis.map(({ value }, at) => value[kind] + (between[at] ?? '')).join('');
  };
  switch (node?.type) {
    case 'Literal':
      return node.regex ? node.regex.pattern : typeof node.value === 'string' ? node.value : undefined;
    case 'TemplateLiteral':
      return woven(node, 'cooked');
    case 'TaggedTemplateExpression':
      return node.tag.type === 'MemberExpression' && node.tag.property.name === 'raw'
        ? woven(node.quasi, 'raw')
        : undefined;
    case 'BinaryExpression':
      return node.operator === '+' ? texts([node.left, node.right])?.join('') : undefined;
    case 'Identifier':
      return valueOf(constants.get(node.name), constants);
    case 'MemberExpression':
      return node.property.name === 'source' ? valueOf(node.object, constants) : undefined;
    default:
      return undefined;
  }
}

function sourcesOf(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .filter((file) => /\.(ts|tsx|js|mjs)$/.test(file) && !/\.test\.tsx?$/.test(file))
    .map((file) => join(folder, file));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folders = process.argv.length > 2 ? process.argv.slice(2) : ['src', 'console/src'];
  const found = folders.flatMap(sourcesOf).flatMap((file) => slowRegexes(file, readFileSync(join(root, file), 'utf8')));
  for (const sentence of found) console.log(sentence);
  process.exitCode = found.length > 0 ? 1 : 0;
}
