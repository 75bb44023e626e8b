import { expect, test } from 'vitest';
import { returnAddress } from './web/return.ts';

const outcome = { profile_name: 'alice', domain: 'shop.example' };

test('the return address has the outcome beside its own parameters', () => {
  const address = returnAddress('https://app.example/done?step=2#here', outcome);
  expect(address?.href).toBe('https://app.example/done?step=2&profile_name=alice&domain=shop.example#here');
  expect(returnAddress('http://localhost:3000/', { code: 'flow_failed', message: 'Not & so' })?.href).toBe(
    'http://localhost:3000/?code=flow_failed&message=Not+%26+so',
  );
});

test.each([
  null,
  '',
  '/relative',
  '//app.example/',
  'app.example',
  'javascript:alert(1)',
  'JavaScript://app.example/%0aalert(1)',
  ' javascript:alert(1)',
  'data:text/html,x',
  'blob:https://app.example/1',
  'file:///etc/passwd',
  'ftp://app.example/',
  'https://known.example@other.example/',
  'https://user:word@other.example/',
  'https://',
])('there is no way back to %j', (given) => {
  expect(returnAddress(given, outcome)).toBeUndefined();
});
