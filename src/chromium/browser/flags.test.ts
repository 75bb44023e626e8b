import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { flags, userAgent, type BrowserKind, type FlagOptions } from './flags.ts';

const optionsWith = (wishes: Partial<FlagOptions> = {}): FlagOptions => ({
  kind: 'headless-shell',
  viewport: { width: 1280, height: 800 },
  stealth: false,
  kiosk: false,
  gpu: false,
  userDataDir: '/home/corral/user-data',
  proxyPort: 3128,
  version: '156.0.8078.79',
  ...wishes,
});

const every = (['headless-shell', 'headless', 'headful'] satisfies BrowserKind[]).flatMap((kind) =>
  [true, false].flatMap((on) => [
    optionsWith({ kind, stealth: on }),
    optionsWith({ kind, kiosk: on }),
    optionsWith({ kind, gpu: on }),
  ]),
);

test.each(every)('Chromium keeps its sandbox, opens no port and goes through the gateway: $engine', (wanted) => {
  const given = flags(wanted);
  expect(given.join(' ')).not.toMatch(/no-sandbox|disable-setuid-sandbox|remote-debugging-port|enable-automation/);
  expect(given).toContain('--remote-debugging-pipe');
  expect(given).toContain('--proxy-server=http://127.0.0.1:3128');
  expect(given).toContain('--proxy-bypass-list=<-loopback>');
  expect(given.at(-1)).toBe('about:blank');
  expect(new Set(given.map((flag) => flag.split('=')[0])).size).toBe(given.length);
});

test('a stealthy browser calls itself what a windowed one does', () => {
  expect(flags(optionsWith({ kind: 'headless', stealth: true }))).toContain(
    `--user-agent=${userAgent('156.0.8078.79')}`,
  );
  expect(userAgent('156.0.8078.79')).toContain('Chrome/156.0.0.0');
});

test('every flag has its reason on the same line', () => {
  const source = readFileSync(new URL('flags.ts', import.meta.url), 'utf8');
  const bare = source.split('\n').filter((line) => /^\s+[`'](--|[A-Z]\w+',)/.test(line) && !line.includes(' // '));
  expect(bare).toEqual([]);
});
