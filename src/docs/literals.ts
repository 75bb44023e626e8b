import { FileOnDisk } from './examples.ts';

/** How a language writes the values of an example. */
interface Language {
  readonly text: (value: string) => string;
  readonly key: (name: string) => string;
  /** The value of an environment variable. */
  readonly variable: (name: string) => string;
  readonly file: (path: string) => string;
  readonly words: { readonly true: string; readonly false: string; readonly null: string };
  /** The text inside the braces of an object that fits on one line. */
  readonly padding: '' | ' ';
  readonly indent: string;
}

const quoted = (value: string) => `'${value.replace(/[\\']/g, String.raw`\$&`)}'`;

export const typescript: Language = {
  text: (value) => (value.includes("'") && !value.includes('"') ? JSON.stringify(value) : quoted(value)),
  key: (name) => (/^[a-z_]\w*$/i.test(name) ? name : quoted(name)),
  variable: (name) => `process.env.${name}!`,
  file: (path) => `createReadStream(${quoted(path)})`,
  words: { true: 'true', false: 'false', null: 'null' },
  padding: ' ',
  indent: '  ',
};

export const python: Language = {
  text: (value) => JSON.stringify(value),
  key: (name) => JSON.stringify(name),
  variable: (name) => `os.environ["${name}"]`,
  file: (path) => `open(${JSON.stringify(path)}, "rb")`,
  words: { true: 'True', false: 'False', null: 'None' },
  padding: '',
  indent: '    ',
};

/** The name of the variable that a text of an example refers to: `$NAME`. */
export const variableOf = (value: string) => /^\$([A-Z_]+)$/.exec(value)?.[1];

const widest = 72;

export function literal(value: unknown, language: Language, depth = 0): string {
  if (value instanceof FileOnDisk) return language.file(value.path);
  if (typeof value === 'string') {
    const variable = variableOf(value);
    return variable ? language.variable(variable) : language.text(value);
  }
  if (value === null || typeof value === 'boolean') return language.words[String(value) as 'true' | 'false' | 'null'];
  if (typeof value !== 'object') return JSON.stringify(value) ?? '';
  const isList = Array.isArray(value);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  const parts = Object.entries(value).map(([key, part]) => {
    const written = literal(part, language, depth + 1);
    return isList ? written : `${language.key(key)}: ${written}`;
  });
  if (parts.length === 0) return open + close;
  const padding = isList ? '' : language.padding;
  const line = `${open}${padding}${parts.join(', ')}${padding}${close}`;
  if (line.length <= widest && !line.includes('\n')) return line;
  const inner = language.indent.repeat(depth + 1);
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${language.indent.repeat(depth)}${close}`;
}
