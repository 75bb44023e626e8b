import { describe, expect, test } from 'vitest';
import { bodyLimit, cleanBody, cleanHeaders, cleanUrl, cutBytes, REDACTED } from './redact.ts';

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const webToken = `${part({ alg: 'HS256' })}.${part({ sub: 's' })}.c2lnbmF0dXJl`;

describe('headers', () => {
  test('credentials and cookies are cut, with names in any case', () => {
    const secret = {
      Authorization: 's3',
      'proxy-authorization': 's3',
      COOKIE: 's3',
      'Set-Cookie': 's3',
      'X-Api-Key': 's3',
    };
    expect(Object.values(cleanHeaders(secret))).toEqual(Array.from({ length: 5 }, () => REDACTED));
  });

  test('others are captured, without the credentials of addresses in them', () => {
    expect(cleanHeaders({ Accept: '*/*', Referer: 'http://user:s3@host/' })).toEqual({
      Accept: '*/*',
      Referer: `http://${REDACTED}@host/`,
    });
  });

  test('a long value is cut, and so is what goes beyond 64 KiB together', () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`h${at}`, 'x'.repeat(10_000)]));
    const values = Object.values(cleanHeaders(many));
    expect(values[0]).toBe(`${'x'.repeat(8192)}…`);
    expect(values.every((value) => value.endsWith('…'))).toBe(true);
    expect(values.join('').replaceAll('…', '').length).toBeLessThanOrEqual(64 * 1024);
    expect(values).toHaveLength(200);
  });
});

test.each([
  ['http://user:s3@host/path?a=1', `http://${REDACTED}@host/path?a=1`],
  ['http://host/login?user=me&password=s3&next=/', `http://host/login?user=me&password=${REDACTED}&next=/`],
  ['http://host/back?code=s3&state=1', `http://host/back?code=${REDACTED}&state=1`],
  ['http://host/?zip_code_list=1&country=de', 'http://host/?zip_code_list=1&country=de'],
  ['http://host/#access_token=s3', `http://host/#access_token=${REDACTED}`],
  ['ws://host/browser/cdp?jwt=s3.s3.s3&x=1', `ws://host/browser/cdp?jwt=${REDACTED}&x=1`],
  [`http://host/browser/kernel/${webToken}/json/version`, `http://host/browser/kernel/${REDACTED}/json/version`],
  [`http://host/?next=%2Flive%3Fjwt%3D${webToken}`, `http://host/?next=%2Flive%3Fjwt%3D${REDACTED}`],
  ['http://host/eyJ.eyJ/a.eyJson.b?token_count=1', 'http://host/eyJ.eyJ/a.eyJson.b?token_count=1'],
  ['http://host/a@b?mail=me@host', 'http://host/a@b?mail=me@host'],
])('the address %s is captured as %s', (url, expected) => {
  expect(cleanUrl(url)).toBe(expected);
});

describe('bodies', () => {
  test.each([
    ['application/json; charset=utf-8', 8192],
    ['application/ld+json', 8192],
    ['text/xml', 8192],
    ['application/x-www-form-urlencoded', 8192],
    ['multipart/form-data; boundary=x', 8192],
    ['text/html', 4096],
    ['text/javascript', 4096],
    ['application/javascript', 4096],
    ['image/png', undefined],
    ['application/octet-stream', undefined],
    ['font/woff2', undefined],
    ['', undefined],
  ])('of %s at most %s bytes are captured', (type, bytes) => {
    expect(bodyLimit(type)).toBe(bytes);
  });

  test('a body is cut in whole characters', () => {
    expect(cutBytes('aéé', 4)).toBe('aé');
    expect(cutBytes('aé', 3)).toBe('aé');
    expect(Buffer.byteLength(cleanBody('é'.repeat(10_000), 8192)!)).toBe(8192);
  });

  test('one-time codes are cut, and the codes of errors are captured', () => {
    expect(cleanBody('user=me&code=731904', 100)).toBe(`user=me&code=${REDACTED}`);
    expect(cleanBody('{"sms_code": "731 904"}', 100)).toBe(`{"sms_code": "${REDACTED}"}`);
    expect(cleanBody('{"code":"not_found"}', 100)).toBe('{"code":"not_found"}');
  });

  test('binary that claims to be text is left out', () => {
    expect(cleanBody('a\0b', 100)).toBeUndefined();
  });

  test.each([
    ['user=me&password=s3&x=1', `user=me&password=${REDACTED}&x=1`],
    ['user%5Bname%5D=me&user[password]=s3', `user%5Bname%5D=me&user[password]=${REDACTED}`],
    [
      '{"user":"me","newPassword": "s\\"3", "otp": 123456}',
      `{"user":"me","newPassword": "${REDACTED}", "otp": "${REDACTED}"}`,
    ],
    [
      `{"jwt":"${webToken}","live":"http://host/live/${webToken}"}`,
      `{"jwt":"${REDACTED}","live":"http://host/live/${REDACTED}"}`,
    ],
    ['{"passwd":"s3 that was cut', `{"passwd":"${REDACTED}"`],
    [
      '--x\r\nContent-Disposition: form-data; name="password"\r\n\r\ns3\r\n--x--',
      `--x\r\nContent-Disposition: form-data; name="password"\r\n\r\n${REDACTED}\r\n--x--`,
    ],
  ])('secret fields of %j are cut', (body, expected) => {
    expect(cleanBody(body, 8192)).toBe(expected);
  });

  test('code that mentions passwords is captured', () => {
    const code = 'if (password == null) return; form.password = input.value;';
    expect(cleanBody(code, 4096)).toBe(code);
  });
});
