import { Secret } from 'otpauth';
import { describe, expect, test } from 'vitest';
import { parseTotp, totpCode, type Totp } from './totp.ts';

const plain: Totp = { secret: 'JBSWY3DPEHPK3PXP', algorithm: 'SHA1', digits: 6, period: 30 };

describe('a TOTP secret', () => {
  test.each<[string, string, Partial<Totp>]>([
    ['base32', 'JBSWY3DPEHPK3PXP', {}],
    ['in groups and in lower case', ' jbsw y3dp ehpk 3pxp\n', {}],
    ['with dashes and padding', 'JBSW-Y3DP-EHPK-3PXP======', {}],
    ['an otpauth URI', 'otpauth://totp/Shop:ann@shop.example?secret=JBSWY3DPEHPK3PXP&issuer=Shop', {}],
    ['a URI with a secret in groups', 'otpauth://totp/Shop?secret=jbsw%20y3dp+ehpk%203pxp', {}],
    ['a URI in capitals', 'OTPAUTH://TOTP/Shop?secret=JBSWY3DPEHPK3PXP', {}],
    [
      'a URI with everything',
      'otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&algorithm=sha-256&digits=8&period=60',
      { algorithm: 'SHA256', digits: 8, period: 60 },
    ],
  ])('is read from %s', (_, text, expected) => expect(parseTotp(text)).toEqual({ ...plain, ...expected }));

  test.each<[string, string, RegExp]>([
    ['nothing', '  ', /has no secret/],
    ['digits that base32 does not have', 'JBSWY3DPEHPK3PX1', /not base32.*character 16 does not fit/],
    ['too little', 'JBSWY3D', /too short/],
    ['too much', 'A'.repeat(1025), /too long/],
    ['a URI of counters', 'otpauth://hotp/a?secret=JBSWY3DPEHPK3PXP&counter=1', /another kind than totp/],
    ['a URI without a secret', 'otpauth://totp/a', /has no secret/],
    ['a URI that is none', 'otpauth://[', /cannot|can be read/],
    ['an unknown algorithm', 'otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&algorithm=MD5', /algorithm/],
    ['nine digits', 'otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&digits=9', /digits.*from 6 to 8/],
    ['no period', 'otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&period=0', /period.*from 10 to 300/],
  ])('is refused from %s, without being quoted', (_, text, reason) => {
    let message = '';
    try {
      parseTotp(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(reason);
    expect(message).toMatch(/^totp_secret /);
    expect(message).not.toContain('JBSWY3D');
  });
});

describe('a code', () => {
  // Appendix B of RFC 6238. The secrets are ASCII digits of the hash's length.
  const ascii = { SHA1: 20, SHA256: 32, SHA512: 64 };
  const base32 = (length: number) => Secret.fromUTF8('1234567890'.repeat(7).slice(0, length)).base32;
  test.each<[number, Totp['algorithm'], string]>([
    [59, 'SHA1', '94287082'],
    [59, 'SHA256', '46119246'],
    [59, 'SHA512', '90693936'],
    [1_111_111_109, 'SHA1', '07081804'],
    [1_234_567_890, 'SHA256', '91819424'],
    [20_000_000_000, 'SHA512', '47863826'],
  ])('at %i s with %s is that of the standard', (seconds, algorithm, code) => {
    const totp = { secret: base32(ascii[algorithm]), algorithm, digits: 8, period: 30 };
    expect(totpCode(totp, seconds * 1000).code).toBe(code);
  });

  test('lasts until the end of its window, including the last millisecond', () => {
    const at = 1_700_000_010_000; // a window begins here
    const first = totpCode(plain, at);
    expect(first.expiresAt).toEqual(new Date(at + 30_000));
    expect(totpCode(plain, at + 29_999)).toEqual(first);
    const next = totpCode(plain, at + 30_000);
    expect(next).toMatchObject({ counter: first.counter + 1, expiresAt: new Date(at + 60_000) });
    expect(next.code).not.toBe(first.code);
    expect(first.code).toMatch(/^\d{6}$/);
  });
});
