import { describe, expect, it } from 'vitest';
import { plainName } from './session-files.ts';

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
