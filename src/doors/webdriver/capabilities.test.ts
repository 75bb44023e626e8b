import { describe, expect, test } from 'vitest';
import { readCapabilities } from './capabilities.ts';
import { optionsOf } from './schema.ts';

const read = (alwaysMatch: object, firstMatch: object[] = [{}]) =>
  readCapabilities({ capabilities: { alwaysMatch, firstMatch } });

describe('the capabilities of New Session', () => {
  test('are sorted by the part that fulfils them', () => {
    const wanted = read({
      browserName: 'chrome',
      platformName: 'ANY',
      pageLoadStrategy: 'eager',
      acceptInsecureCerts: true,
      webSocketUrl: true,
      proxy: null,
      'goog:loggingPrefs': { browser: 'ALL' },
      'goog:chromeOptions': {
        args: ['--headless=new', 'window-size=800,600', '--no-sandbox'],
        extensions: [],
        mobileEmulation: { deviceName: 'Pixel 7' },
        excludeSwitches: ['enable-automation'],
      },
      'corral:options': { apiKey: 'k', profile: { name: 'p' }, headless: true },
    });
    expect(wanted).toEqual({
      apiKey: 'k',
      options: { headless: true, viewport: { width: 800, height: 600 }, profile: { name: 'p' } },
      driver: {
        pageLoadStrategy: 'eager',
        'goog:loggingPrefs': { browser: 'ALL' },
        'goog:chromeOptions': { mobileEmulation: { deviceName: 'Pixel 7' } },
      },
      acceptInsecureCerts: true,
      bidi: true,
    });
    expect(optionsOf(wanted.options)).toEqual(wanted.options);
  });

  test('names that every object has are refused as other unknown names are', () => {
    expect(() => read({ 'goog:chromeOptions': { constructor: 'x' } })).toThrow(
      /constructor' is not taken here. Leave it/,
    );
    expect(() => read({ 'goog:chromeOptions': { args: ['--constructor'] } })).toThrow(
      /is started by the service; leave/,
    );
  });

  test('the first possible entry is used', () => {
    const { options } = read({ 'corral:options': { headless: true } }, [
      { browserName: 'firefox' },
      { browserName: 'Chrome' },
    ]);
    expect(options).toEqual({ headless: true });
    expect(() => read({ browserVersion: '99' })).toThrow('browserVersion cannot be chosen');
    expect(() => read({}, [{ browserName: 'firefox' }, { platformName: 'mac' }])).toThrow(
      'not "firefox" (browserName). The platform here is linux',
    );
  });

  const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`a:${at}`, 1]));

  test('an object has at most a hundred names, before it is joined with others', () => {
    const most = { ...names(99), browserName: 'firefox' };
    expect(() =>
      read(
        most,
        Array.from({ length: 50 }, () => ({ 'b:0': 1 })),
      ),
    ).toThrow('not "firefox" (browserName)');
    for (const [field, body] of [
      ['capabilities.alwaysMatch', () => read(names(101))],
      ['capabilities.firstMatch', () => read({}, [{ browserName: 'firefox' }, names(101)])],
      ['corral:options', () => read({ 'corral:options': names(101) })],
      ['goog:chromeOptions', () => read({ 'goog:chromeOptions': names(101) })],
    ] as const)
      expect(body).toThrow(`'${field}' has more than 100 names`);
  });

  test('of a long text only the first letters are read', () => {
    const long = 'x'.repeat(1_000_000);
    expect(() => read({ browserName: `chrome${long}` })).toThrow(`not "chrome${'x'.repeat(94)}" (browserName)`);
    expect(read({ 'goog:chromeOptions': { args: [`--no-sandbox=${long}`] } }).options).toEqual({});
    expect(() => read({ 'goog:chromeOptions': { args: [`--a${long}!`] } })).toThrow(`"--a${'x'.repeat(97)}", which`);
  });

  test.each([
    [undefined, "'capabilities' is missing"],
    [{ desiredCapabilities: {} }, "'capabilities' is missing"],
    [{ capabilities: { alwaysMatch: [] } }, "'capabilities.alwaysMatch' must be an object"],
    [{ capabilities: { firstMatch: [] } }, 'list of 1 to 50'],
    [{ capabilities: { firstMatch: [1] } }, 'list of objects'],
    [{ capabilities: { alwaysMatch: { a: 1 }, firstMatch: [{ a: 2 }] } }, "'a' is in alwaysMatch and in firstMatch"],
  ])('%j is refused', (body, message) => {
    expect(() => readCapabilities(body)).toThrow(message);
  });

  test.each([
    [{ browserName: 5 }, "'browserName' must be a string"],
    [{ webSocketUrl: 'yes' }, "'webSocketUrl' must be"],
    [{ acceptInsecureCerts: 'yes' }, "'acceptInsecureCerts' must be"],
    [{ proxy: { proxyType: 'manual' } }, 'corral:options.proxy_id'],
    [{ 'corral:options': 'x' }, "'corral:options' must be an object"],
    [{ 'corral:options': { apiKey: 1 } }, "'corral:options.apiKey' must be a string"],
    [{ 'goog:chromeOptions': { args: '--headless' } }, 'must be a list of strings'],
    [{ 'goog:chromeOptions': { args: ['--user-data-dir=/x'] } }, 'Use corral:options.profile'],
    [{ 'goog:chromeOptions': { args: ['--window-size=big'] } }, 'which is not taken'],
    [{ 'goog:chromeOptions': { args: ['--disable-web-security'] } }, '"--disable-web-security", which is not taken'],
    [{ 'goog:chromeOptions': { args: ['__proto__'] } }, 'which is not taken'],
    [{ 'goog:chromeOptions': { excludeSwitches: ['mute-audio'] } }, 'excludeSwitches'],
    [{ 'goog:chromeOptions': { prefs: { a: 1 } } }, 'chrome_policy'],
    [{ 'goog:chromeOptions': { debuggerAddress: '10.0.0.1:9222' } }, 'leave it out'],
    [
      { 'goog:chromeOptions': { args: ['--headless'] }, 'corral:options': { headless: false } },
      "'corral:options.headless' contradicts",
    ],
  ])('%j is refused', (capabilities, message) => {
    expect(() => read(capabilities)).toThrow(message);
  });

  test('options are those of POST /browsers', () => {
    expect(() => optionsOf({ heedless: true })).toThrow('heedless is not a field here. Did you mean headless?');
    expect(() => optionsOf({ viewport: { width: 0, height: 1 } })).toThrow('viewport.width must be at least 1');
  });
});
