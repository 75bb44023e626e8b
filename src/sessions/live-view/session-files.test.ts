import { describe, expect, it } from 'vitest';
import { newestOf, plainName } from './session-files.ts';

it('the newest files are found among many', () => {
  const newest = newestOf<string>(3, (time) => time);
  for (let at = 0; at < 1000; at++) newest.add(`2026-01-01T00:00:00.${String((at * 7) % 1000).padStart(3, '0')}Z`);
  expect(newest.all()).toEqual(['999', '998', '997'].map((ms) => `2026-01-01T00:00:00.${ms}Z`));
});

describe('the name of a viewer’s file', () => {
  it.each([
    ['report.pdf', 'report.pdf'],
    ['<b>ü.txt', '<b>ü.txt'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\fakepath\\x.txt', 'x.txt'],
    ['a\u0000\nb', 'ab'],
    ['..', 'file'],
    ['', 'file'],
    ['dir/', 'file'],
  ])('%j becomes %j', (given, name) => expect(plainName(given)).toBe(name));

  it('fits into a directory', () => {
    expect(Buffer.byteLength(plainName('漢'.repeat(255)))).toBeLessThanOrEqual(200);
  });
});
