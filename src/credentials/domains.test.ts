import { describe, expect, test, vi } from 'vitest';
import { bestFit, domainOf, fit, looksLikeDomain, namesSite } from './domains.ts';

test.each<[string, string | undefined]>([
  ['shop.example', 'shop.example'],
  [' Shop.Example. ', 'shop.example'],
  ['https://shop.example/login?x=1', 'shop.example'],
  ['https://shop.example:443/', 'shop.example'],
  ['localhost:3000', 'localhost:3000'],
  ['http://127.0.0.1:8080/', '127.0.0.1:8080'],
  ['[::1]:8080', '[::1]:8080'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['', undefined],
  ['two words', undefined],
  ['ftp://shop.example/', undefined],
  ['javascript://shop.example/%0aalert(1)', undefined],
  ['*.shop.example', undefined],
  ['ann:secret@shop.example', undefined],
  ['-shop.example', undefined],
  ['a'.repeat(300), undefined],
])('the domain of %j is %j', (text, domain) => expect(domainOf(text)).toBe(domain));

test('a host of more than 300 letters is not parsed', () => {
  const canParse = vi.spyOn(URL, 'canParse');
  const long = 'é'.repeat(301);
  expect([
    domainOf(long),
    fit(`https://${long}`, 'shop.example'),
    namesSite(['shop.example'], `http://${long}/`),
  ]).toEqual([undefined, 0, false]);
  expect(canParse.mock.calls.flat().filter((text) => String(text).includes(long))).toEqual([]);
  canParse.mockRestore();
});

describe('an address of an item', () => {
  test.each<[string, string]>([
    ['https://shop.example/login', 'shop.example'],
    ['shop.example', 'https://SHOP.example/'],
    ['https://www.shop.example', 'shop.example'],
    ['shop.example', 'www.shop.example'],
    ['*.shop.example', 'eu.shop.example'],
    ['https://*.shop.example/login', 'a.b.shop.example'],
    ['http://localhost:3000/', 'localhost:3000'],
    ['shop.example', 'shop.example:8443'],
    ['https://shop.example', 'https://shop.example:8443'],
    ['http://shop.example', 'https://shop.example'],
    ['shop.example', 'http://shop.example'],
    ['https://shop.example:443', 'https://shop.example'],
    ['https://shop.example:8443', 'shop.example'],
  ])('%s fits %s', (address, domain) => expect(fit(address, domain)).toBeGreaterThan(0));

  test.each<[string, string]>([
    ['https://shop.example', 'evil-shop.example'],
    ['https://shop.example', 'login.shop.example'], // may belong to a customer of the shop
    ['https://login.shop.example', 'shop.example'], // or `co.uk` would get the password of every shop.co.uk
    ['*.shop.example', 'shop.example'],
    ['*.shop.example', 'evilshop.example'],
    ['*.1', '127.0.0.1'],
    ['*', 'shop.example'],
    ['*.*.example', 'a.shop.example'],
    ['https://shop.example.evil.example', 'shop.example'],
    ['https://shop.example@evil.example', 'shop.example'],
    ['android://hash@com.shop', 'com.shop'],
    ['http://localhost:3000/', 'localhost:4000'],
    ['https://shop.example', 'http://shop.example'], // sent without encryption
    ['https://shop.example:8443', 'https://shop.example'],
    ['', 'shop.example'],
  ])('%s does not fit %s', (address, domain) => expect(fit(address, domain)).toBe(0));
});

test('addresses name a page by its origin, without the rest', () => {
  const addresses = ['https://shop.example/login', '*.pay.example'];
  expect(namesSite(addresses, `https://shop.example/oauth?state=${'x'.repeat(5000)}`)).toBe(true);
  expect(namesSite(addresses, 'https://eu.pay.example/')).toBe(true);
  for (const page of [
    'https://shop.example@evil.example/',
    'https://evil.example/?https://shop.example',
    'about:blank',
  ])
    expect(namesSite(addresses, page)).toBe(false);
  for (const page of ['blob:https://shop.example/1', 'null', '', 'data:text/html,https://shop.example'])
    expect(namesSite(addresses, page)).toBe(false);
  expect(namesSite([], 'shop.example')).toBe(false);
});

test('the whole name fits better than www, that better than a wildcard, and a long wildcard better than a short one', () => {
  const items = [
    { id: 'none' },
    { id: 'short', urls: ['*.example'] },
    { id: 'long', urls: ['*.shop.example'] },
    { id: 'www', urls: ['https://www.eu.shop.example'] },
    { id: 'whole', urls: ['https://other.example', 'https://eu.shop.example'] },
    { id: 'whole too', urls: ['eu.shop.example'] },
  ];
  const order: (string | undefined)[] = [];
  for (let left = items; left.length > 0;) {
    const best = bestFit(left, 'eu.shop.example');
    order.push(best?.id);
    if (!best) break;
    left = left.filter((item) => item !== best);
  }
  expect(order).toEqual(['whole', 'whole too', 'www', 'long', 'short', undefined]);
});

test.each<[string, boolean]>([
  ['shop.example', true],
  ['*.shop.example', true],
  ['Shop.Example', true],
  ['shop', false],
  ['v1.2', false],
  ['my shop.example', false],
])('%j names a site: %s', (text, expected) => expect(looksLikeDomain(text)).toBe(expected));

test('of an item with very many addresses the first hundred count, and each is read once', () => {
  const urls = Array.from({ length: 200_000 }, (_, at) => `site-${at}.example`);
  const items = [{ urls }, { urls: ['shop.example'] }];
  expect(bestFit(items, 'shop.example')).toBe(items[1]);
  expect(bestFit(items, 'site-99.example')).toBe(items[0]);
  expect(bestFit(items, 'site-100.example')).toBeUndefined();
  const parse = vi.spyOn(URL, 'canParse');
  expect(bestFit(items, 'site-98.example')).toBe(items[0]);
  expect(parse.mock.calls.length).toBeLessThan(5);
  parse.mockRestore();
});
