import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { flags, policyOf, userAgent, type BrowserKind, type FlagOptions } from './flags.ts';

const optionsWith = (wishes: Partial<FlagOptions> = {}): FlagOptions => ({
  kind: 'headless-shell',
  viewport: { width: 1280, height: 800 },
  stealth: false,
  kiosk_mode: false,
  gpu: false,
  userDataDir: '/home/corral/user-data',
  proxyPort: 3128,
  policies: true,
  version: '156.0.8078.79',
  ...wishes,
});

const every = (['headless-shell', 'headless', 'headful'] satisfies BrowserKind[]).flatMap((kind) =>
  [true, false].flatMap((on) => [
    optionsWith({ kind, stealth: on }),
    optionsWith({ kind, kiosk_mode: on }),
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

test('a stealthy browser has the user agent of a windowed one', () => {
  expect(flags(optionsWith({ kind: 'headless', stealth: true }))).toContain(
    `--user-agent=${userAgent('156.0.8078.79')}`,
  );
  expect(userAgent('156.0.8078.79')).toContain('Chrome/156.0.0.0');
});

test('a headful browser without policies has no flag that Chromium warns of in a bar', () => {
  const warned = (wishes: Partial<FlagOptions>) =>
    flags(optionsWith(wishes)).filter((flag) => flag.startsWith('--gaia-url='));
  expect(warned({ kind: 'headful', policies: false, stealth: true })).toEqual([]);
  expect(warned({ kind: 'headful' })).toHaveLength(1);
  expect(warned({ kind: 'headless-shell', policies: false })).toHaveLength(1);
});

test('a headful browser without a card renders WebGL in software', () => {
  expect(flags(optionsWith({ kind: 'headful' }))).toContain('--use-angle=swiftshader');
  expect(flags(optionsWith({ kind: 'headful', gpu: true }))).not.toContain('--use-angle=swiftshader');
});

test('a headful browser searches with the engine of the service, if there is one', () => {
  expect(policyOf('headful', 'https://find.test/a?q=%s&again=%s')).toMatchObject({
    DefaultSearchProviderEnabled: true,
    DefaultSearchProviderName: 'find.test',
    DefaultSearchProviderSearchURL: 'https://find.test/a?q={searchTerms}&again={searchTerms}',
  });
  expect(policyOf('headful')).not.toHaveProperty('DefaultSearchProviderEnabled');
  expect(policyOf('headful')).toMatchObject({ CommandLineFlagSecurityWarningsEnabled: false });
  for (const kind of ['headful', 'headless'] as const)
    expect(policyOf(kind)).toMatchObject({ BlockThirdPartyCookies: false, PasswordLeakDetectionEnabled: false });
  expect(policyOf('headless-shell')).toEqual({});
});

test('every flag has its reason on the same line', () => {
  const source = readFileSync(new URL('flags.ts', import.meta.url), 'utf8');
  const bare = source.split('\n').filter((line) => /^\s+[`'](--|[A-Z]\w+',)/.test(line) && !line.includes(' // '));
  expect(bare).toEqual([]);
});

test.each(['headless-shell', 'headless', 'headful'] satisfies BrowserKind[])(
  'a %s browser has a mouse, and behaves like a browser launched by its driver',
  (kind) => {
    const given = flags(optionsWith({ kind }));
    expect(given).toContain('--disable-back-forward-cache');
    expect(given.find((flag) => flag.startsWith('--blink-settings='))).toMatch(
      /primaryHoverType=2.*primaryPointerType=4/,
    );
    expect(given).toContain('--enable-features=CDPScreenshotNewSurface');
    const disabled = (of: string[]) => of.find((flag) => flag.startsWith('--disable-features='))!.split(/[=,]/);
    expect(disabled(given)).toContain('ThirdPartyStoragePartitioning');
    expect(disabled(flags(optionsWith({ kind, stealth: true })))).not.toContain('ThirdPartyStoragePartitioning');
  },
);
