export type Format = 'table' | 'json' | 'jsonl';

export interface Output {
  format: Format;
  /** Rows of a list, as a table of the named columns, as one array, or as a line each. */
  list(rows: readonly object[], columns: readonly string[]): void;
  /** One thing: a line for each of its fields, or JSON. */
  one(thing: unknown): void;
  /** One event of a stream. As JSON it is one line. In the table format it is the text; undefined prints nothing. */
  event(event: unknown, text: string | undefined): void;
  /** The result of a command: a sentence, or as JSON the answer of the service (null when it is empty). */
  done(sentence: string, answer?: unknown): void;
  /** Only in the table format, on stderr. */
  note(sentence: string): void;
}

interface Terminal {
  isTTY?: boolean;
  columns?: number;
}
interface Streams {
  stdout: Terminal & { write(text: string): unknown };
  stderr: Terminal & { write(text: string): unknown };
}

function hasColours(stream: Terminal, env: Record<string, string | undefined>): boolean {
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

export function openOutput(format: Format, streams: Streams, env: Record<string, string | undefined>): Output {
  const { stdout, stderr } = streams;
  const bold = hasColours(stdout, env) ? (text: string) => `\x1b[1m${text}\x1b[22m` : (text: string) => text;
  const print = (line: string) => void stdout.write(`${line}\n`);
  return {
    format,
    list(rows, columns) {
      if (format === 'json') return print(JSON.stringify(rows, null, 2));
      if (format === 'jsonl') return rows.forEach((row) => print(JSON.stringify(row)));
      if (rows.length === 0) return void stderr.write('None.\n');
      const cells = rows.map((row) => columns.map((column) => cell(valueAt(row, column))));
      const [head, ...lines] = table([columns.map(titleOf), ...cells]);
      print([bold(head!), ...lines].join('\n'));
    },
    one(thing) {
      if (format === 'json') return print(JSON.stringify(thing ?? null, null, 2));
      if (format === 'jsonl') return print(JSON.stringify(thing ?? null));
      if (typeof thing !== 'object' || thing === null) return print(cell(thing));
      const fields = Object.entries(thing).filter(([, value]) => value !== null && value !== undefined);
      const width = Math.max(0, ...fields.map(([name]) => name.length));
      for (const [name, value] of fields) print(`${bold(name.padEnd(width))}  ${cell(value)}`.trimEnd());
    },
    event(event, text) {
      if (format !== 'table') return print(JSON.stringify(event));
      if (text !== undefined) print(text);
    },
    done(sentence, answer) {
      if (format === 'table') return print(sentence);
      print(JSON.stringify(answer ?? null));
    },
    note(sentence) {
      if (format === 'table') stderr.write(`${sentence}\n`);
    },
  };
}

/** Columns as wide as their widest cell. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** `viewport.width` of an answer. */
export function valueAt(thing: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((at, step) => (at as Record<string, unknown> | null | undefined)?.[step], thing);
}

function titleOf(column: string): string {
  return column.replaceAll(/[._]/g, ' ').toUpperCase();
}

/** Text of the service or of a page is not trusted: its control characters do not reach the terminal. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // oxlint-disable-next-line no-control-regex -- control characters are removed here
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/** 12 kB, 3.4 MB: rounded for people. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power - 1]}`;
}
