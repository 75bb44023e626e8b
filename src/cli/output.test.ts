import { expect, test } from 'vitest';
import { cell, openOutput, size, type Format } from './output.ts';
import { bar } from './progress.ts';

function output(
  format: Format,
  { terminal = false, env = {} }: { terminal?: boolean; env?: Record<string, string> } = {},
) {
  const written = { out: '', err: '' };
  const stdout = { isTTY: terminal, write: (text: string) => (written.out += text) };
  const stderr = { isTTY: terminal, write: (text: string) => (written.err += text) };
  return { written, ...openOutput(format, { stdout, stderr }, env) };
}

const rows = [
  { id: 'a', at: { url: 'x' }, more: true },
  { id: 'long', at: null },
];

test('a list is a table, one JSON, or lines', () => {
  const table = output('table');
  table.list(rows, ['id', 'at.url', 'more']);
  expect(table.written.out).toBe('ID    AT URL  MORE\na     x       true\nlong  -       -\n');
  const json = output('json');
  json.list(rows, ['id']);
  expect(JSON.parse(json.written.out)).toEqual(rows);
  const lines = output('jsonl');
  lines.list(rows, ['id']);
  expect(
    lines.written.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object),
  ).toEqual(rows);
});

test('an empty list prints a note to stderr in the table format', () => {
  const table = output('table');
  table.list([], ['id']);
  expect(table.written).toEqual({ out: '', err: 'None.\n' });
});

test('notes are printed in the table format only, and an empty answer is null in JSON', () => {
  const json = output('json');
  json.note('There are more.');
  json.done('Deleted.');
  expect(json.written).toEqual({ out: 'null\n', err: '' });
});

test('colours are for terminals, and never with NO_COLOR', () => {
  const coloured = (terminal: boolean, env = {}) => {
    const table = output('table', { terminal, env });
    table.list(rows, ['id']);
    return table.written.out.includes('\x1b[');
  };
  expect([coloured(true), coloured(false), coloured(true, { NO_COLOR: '1' })]).toEqual([true, false, false]);
});

test('no control character of an answer reaches the terminal', () => {
  expect(cell('a\x1b]0;title\x07b\r\nc')).toBe('a ]0;title b c');
});

test('sizes and bars are rounded for people', () => {
  expect([999, 1000, 38_515, 12_345_678].map(size)).toEqual(['999 B', '1.0 kB', '39 kB', '12 MB']);
  expect(bar('a.zip', 5e6, 10e6, 80)).toBe('a.zip  ############............  50 %  10.0 MB');
  expect(bar('a.zip', 5e6, 0, 80)).toBe('a.zip  5.0 MB');
});
