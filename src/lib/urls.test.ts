import { expect, test } from 'vitest';
import { urlOf } from './urls.ts';

const long = 'é'.repeat(301);

test.each([
  `http://${long}/`,
  `HTTPS:${long}`,
  ` \u0001ht\ntp:/\\\t/${long}:80/a`,
  `wss://user:word@other@${long}?a`,
  `ftp://${long}#a`,
  `http:\\\\${long}`,
  `file://${long}`,
  `http://${encodeURIComponent('é'.repeat(51))}`,
  `http://xn--${'a'.repeat(300)}-4gq`,
  `blob: http://${long}/a`,
  'shop.example',
  'http://a b/',
])('%j is not a URL', (text) => expect(urlOf(text)).toBeUndefined());

test.each([
  ['http://shop.example', 'http://shop.example/'],
  [`https://${'a'.repeat(400)}@shop.example/`, `https://${'a'.repeat(400)}@shop.example/`],
  [`https://shop.example?${'a'.repeat(400)}`, `https://shop.example/?${'a'.repeat(400)}`],
  [`data:${'a'.repeat(400)}`, `data:${'a'.repeat(400)}`],
  ['about:blank', 'about:blank'],
  ['blob:https://shop.example/a', 'blob:https://shop.example/a'],
  [`git://${'a'.repeat(400)}/`, `git://${'a'.repeat(400)}/`],
])('%j is one', (text, href) => expect(urlOf(text)?.href).toBe(href));
