import { expect, test } from 'vitest';
import { entryAddresses, keptAddress, shownAddress } from './addresses.ts';
import { allowedHosts } from './hosts.ts';

const connection = {
  id: 'con_1',
  domain: 'shop.example',
  allowedDomains: ['*.login.example', 'https://id.example/x', 'http://plain.example', 'ours.auth0.com', 'b2clogin.com'],
};

test.each([
  ['https://shop.example/login', true],
  ['https://www.shop.example:8443/', true],
  ['https://accounts.shop.example/', true],
  ['https://eu.login.example/', true],
  ['https://id.example/', true],
  ['http://shop.example/login', false],
  ['http://plain.example/', true],
  ['https://plain.example/', true],
  ['https://accounts.google.com/o/oauth2', false],
  ['https://tenant.okta.com/', false],
  ['https://ours.auth0.com/', true],
  ['https://theirs.auth0.com/', false],
  ['https://below.ours.auth0.com/', false],
  ['https://theirs.b2clogin.com/', false],
  ['https://notshop.example/', false],
  ['https://shop.example.evil.example/', false],
  ['https://okta.com.evil.example/', false],
  ['https://shop.example@evil.example/', false],
  ['data:text/html,shop.example', false],
])('%s may be typed into: %s', (url, allowed) => {
  expect(allowedHosts(connection).safe(url)).toBe(allowed);
});

test('an address of an IP has nothing below it', () => {
  const { own } = allowedHosts({ id: 'con_1', domain: '127.0.0.1:3000', allowedDomains: [] });
  expect([own('http://127.0.0.1:4000/'), own('http://8.127.0.0.1.example/')]).toEqual([true, false]);
});

test.each([
  ['shop.example', ['shop.example', 'www.shop.example', 'pay.shop.example', 'a.www.shop.example'], ['www.example']],
  ['www.shop.example', ['shop.example', 'www.shop.example', 'a.www.shop.example'], ['pay.shop.example', 'www.example']],
  ['https://www.shop.example/in', ['shop.example', 'www.shop.example'], ['pay.shop.example']],
  ['www.okta.com', ['www.okta.com'], ['okta.com', 'thief.okta.com']],
])(
  'a domain includes its host, with and without www., and all names below the name as written: %s',
  (domain, those, others) => {
    for (const given of [
      { domain, allowedDomains: [] },
      { domain: 'id.example', allowedDomains: [domain] },
    ]) {
      const { safe } = allowedHosts({ id: 'con_1', ...given });
      expect(those.filter((host) => !safe(`https://${host}/`))).toEqual([]);
      expect(others.filter((host) => safe(`https://${host}/`))).toEqual([]);
    }
  },
);

test('http is for the host that the connection says it for', () => {
  const { safe } = allowedHosts({ ...connection, loginUrl: 'http://shop.example:8080/in' });
  expect(['http://shop.example/', 'http://www.shop.example/', 'http://pay.shop.example/'].map(safe)).toEqual([
    true,
    true,
    false,
  ]);
  expect(allowedHosts({ ...connection, plainHttp: true }).safe('http://pay.shop.example/')).toBe(true);
});

test('a login begins at login_url, then at the start page with the same scheme and port', () => {
  expect(entryAddresses(connection)).toEqual(['https://shop.example/']);
  expect(entryAddresses({ ...connection, plainHttp: true })).toEqual(['http://shop.example/']);
  const loginUrl = 'http://shop.example:8080/in?x=1';
  expect(entryAddresses({ ...connection, loginUrl })).toEqual([loginUrl, 'http://shop.example:8080/']);
});

test('addresses are kept without the parameters that passed the login on', () => {
  expect(keptAddress('https://u:p@shop.example/home?tab=2&code=abc&access_token=x#access_token=y')).toBe(
    'https://shop.example/home?tab=2',
  );
  expect(keptAddress('https://shop.example/#/inbox')).toBe('https://shop.example/#/inbox');
  expect(shownAddress('https://shop.example/reset?token=secret')).toBe('https://shop.example/reset?token=…');
});
