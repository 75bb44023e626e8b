import { describe, expect, test } from 'vitest';
import { needsBrowser, telemetryCategories, type TelemetryCategory } from '../lib/telemetry.ts';
import {
  captureOf,
  captureOnAcquire,
  captureOnCreate,
  captureOnUpdate,
  inReply,
  nothing,
  type TelemetryRequest,
} from './capture.ts';

const usual: TelemetryCategory[] = ['control', 'connection', 'system', 'captcha'];
const set = (...categories: TelemetryCategory[]) => new Set(categories);
const on = { enabled: true };
const off = { enabled: false };
const allOff = Object.fromEntries(telemetryCategories.map((category) => [category, off]));

describe('a create', () => {
  test.each<[string, TelemetryRequest | null | undefined, TelemetryCategory[]]>([
    ['left out', undefined, []],
    ['null', null, []],
    ['empty', {}, []],
    ['no category', { browser: {} }, []],
    ['a category without a flag', { browser: { console: {} } }, []],
    ['switched off', { enabled: false }, []],
    ['switched off, with an empty list', { enabled: false, browser: {} }, []],
    ['everything off', { browser: allOff }, []],
    ['switched on', { enabled: true }, usual],
    ['a category', { browser: { console: on } }, [...usual, 'console']],
    ['switched on with a category', { enabled: true, browser: { network: on } }, [...usual, 'network']],
    ['a category of the default set off', { browser: { captcha: off } }, ['control', 'connection', 'system']],
    ['one on and one off', { browser: { page: on, system: off } }, ['control', 'connection', 'captcha', 'page']],
  ])('%s', (_what, request, expected) => {
    expect(captureOnCreate(request)).toEqual(set(...expected));
  });
});

describe('an update', () => {
  test.each<[string, TelemetryCategory[], TelemetryRequest | null | undefined, TelemetryCategory[] | undefined]>([
    ['left out', ['console'], undefined, undefined],
    ['null', ['console'], null, undefined],
    ['empty', ['console'], {}, undefined],
    ['no category', ['console'], { browser: {} }, undefined],
    ['a category', ['console'], { browser: { page: on } }, ['console', 'page']],
    ['a category while nothing is captured', [], { browser: { page: on } }, [...usual, 'page']],
    [
      'a category off while nothing is captured',
      [],
      { browser: { system: off } },
      ['control', 'connection', 'captcha'],
    ],
    ['a category off', ['console', 'page'], { browser: { page: off } }, ['console']],
    ['the last category off', ['console'], { browser: { console: off } }, []],
    ['switched on', ['console'], { enabled: true }, usual],
    ['switched on with a category', ['console'], { enabled: true, browser: { page: on } }, [...usual, 'page']],
    ['switched on without one of the default set', [], { enabled: true, browser: { captcha: off } }, usual.slice(0, 3)],
    ['switched off', ['console'], { enabled: false }, []],
  ])('%s', (_what, before, request, expected) => {
    expect(captureOnUpdate(set(...before), request)).toEqual(expected && set(...expected));
  });
});

test('false with flags is refused, on or off, and the category is named', () => {
  for (const flag of [on, off])
    for (const decide of [captureOnCreate, (it: TelemetryRequest) => captureOnUpdate(set('console'), it)])
      expect(() => decide({ enabled: false, browser: { network: flag } })).toThrow(/telemetry\.browser\.network/);
});

describe('an acquire', () => {
  test.each<[string, TelemetryCategory[], TelemetryRequest | null | undefined, TelemetryCategory[]]>([
    ['keeps what the pool captures', ['console'], undefined, ['console']],
    ['adds to it', ['console'], { browser: { page: on } }, ['console', 'page']],
    ['replaces it', ['console'], { enabled: true }, usual],
    ['stops it', ['console'], { enabled: false }, []],
    ['begins with the default set where the pool captures nothing', [], { browser: { page: on } }, [...usual, 'page']],
  ])('%s', (_what, pool, request, expected) => {
    expect(captureOnAcquire(set(...pool), request)).toEqual(set(...expected));
  });
});

test('a reply names every category, and is read back as the same', () => {
  const capture = set('console', 'control');
  const reply = inReply(capture)!;
  expect(Object.keys(reply.browser)).toEqual([...telemetryCategories]);
  expect(reply.browser).toMatchObject({ console: on, control: on, network: off });
  expect(captureOf(reply)).toEqual(capture);
  expect(captureOf(['console', 'control', 'of a newer version'])).toEqual(capture);
  expect(captureOf(null)).toEqual(nothing);
  expect(inReply(nothing)).toBeNull();
});

test('the service attaches to the browser only for what the browser has to be asked for', () => {
  expect(needsBrowser(set('control', 'connection', 'system'))).toBe(false);
  expect(needsBrowser(set('control', 'network'))).toBe(true);
});
