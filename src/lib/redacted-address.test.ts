import { expect, test } from 'vitest';
import { redactedAddress } from './redacted-address.ts';

test.each([
  ['https://browsers.example.com/base', 'https://browsers.example.com/base'],
  ['https://*.sessions.example.com', 'https://*.sessions.example.com'],
  ['https://ada:hunter2@registry.example.com/npm/', 'https://***@registry.example.com/npm/'],
  ['postgres://ada:hunter2@db:5432/corral?sslmode=require', 'postgres://***@db:5432/corral?sslmode=***'],
  ['postgres://ada:hun/t?er#2@x@db/corral', 'postgres://***@db/corral'],
  ['postgres:///corral?host=/run&password=hunter2', 'postgres:///corral?host=***&password=***'],
  ['https://check.example.com/?hunter2', 'https://check.example.com/?***'],
  ['https://search.example.com/?q=%s&key=hunter2&lang=', 'https://search.example.com/?q=%s&key=***&lang='],
  ['/etc/proxies.json', '/etc/proxies.json'],
])('%s is redacted as %s', (address, redacted) => {
  expect(redactedAddress(address)).toBe(redacted);
});
