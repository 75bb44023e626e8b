import { describe, expect, test } from 'vitest';
import { browserOf, configOf, defaultConfig, fillSeconds, mergeConfig, sameBrowser } from './config.ts';
import type { PoolRow } from './store.ts';

const profile = { id: 'prof1' };
const withProfile = { ...defaultConfig, profile, refresh_on_profile_update: true };

describe('a new pool', () => {
  test('has the defaults, and nothing that is not a field of it', () => {
    const request = { headless: true, gpu: true, hostile: { deep: 1 } };
    expect(configOf(request)).toEqual({
      ...defaultConfig,
      headless: true,
    });
  });

  test.each([
    ['without a profile', {}, false],
    ['with a profile', { profile }, true],
    ['with a profile and its own word', { profile, refresh_on_profile_update: false }, false],
  ])('refreshes when the profile is saved: %s', (_, request, expected) => {
    expect(configOf(request).refresh_on_profile_update).toBe(expected);
  });

  test('that is to refresh without a profile is refused', () => {
    expect(() => configOf({ refresh_on_profile_update: true })).toThrow(/needs a profile/);
  });

  test('that is to hide the bars of windows it has not is refused', () => {
    expect(() => configOf({ headless: true, kiosk_mode: true })).toThrow(/leave out headless or kiosk_mode/);
  });

  test('with displays that would be too large is refused', () => {
    expect(() => configOf({ viewport: { width: 8192, height: 8192 } })).toThrow(/viewport .* at most 16777216 pixels/);
  });

  test('takes save_changes and forgets it', () => {
    expect(configOf({ profile: { ...profile, save_changes: true } }).profile).toEqual(profile);
  });
});

describe('an update', () => {
  const policy = { HomepageLocation: 'https://example.com' };
  const before = {
    ...withProfile,
    engine_policy: policy,
    proxy_id: 'px',
    start_url: 'https://example.com',
    extensions: [{ id: 'ext' }],
    viewport: { width: 800, height: 600 },
  };

  test('is refused when a change makes a field that is left out meaningless', () => {
    const kiosk = { ...before, kiosk_mode: true };
    expect(() => mergeConfig(kiosk, { headless: true })).toThrow(/leave out headless or kiosk_mode/);
    expect(mergeConfig(kiosk, { headless: true, kiosk_mode: false })).toMatchObject({ headless: true });
  });

  test('keeps fields that are left out', () => {
    expect(mergeConfig(before, {})).toEqual(before);
    expect(mergeConfig(before, { timeout_seconds: 60 })).toEqual({ ...before, timeout_seconds: 60 });
  });

  test.each([
    ['proxy_id', { proxy_id: '' }],
    ['start_url', { start_url: '' }],
    ['extensions', { extensions: [] }],
    ['engine_policy', { engine_policy: {} }],
    ['engine_policy', { chrome_policy: {} }],
  ])('clears %s with an empty one', (field, request) => {
    expect(mergeConfig(before, request)).not.toHaveProperty(field);
  });

  test('with an empty profile id clears the profile and stops refreshing, with any other fields', () => {
    const after = mergeConfig(before, { profile: { id: '' }, refresh_on_profile_update: true });
    expect(after).not.toHaveProperty('profile');
    expect(after.refresh_on_profile_update).toBe(false);
  });

  test.each([
    ['another profile', { profile: { id: 'prof2' } }, true],
    ['the same profile', { profile }, false],
    ['the same profile with save_changes', { profile: { ...profile, save_changes: true } }, false],
    ['another profile and its own word', { profile: { id: 'prof2' }, refresh_on_profile_update: false }, false],
  ])('to %s decides whether it refreshes', (_, request, expected) => {
    expect(mergeConfig({ ...before, refresh_on_profile_update: false }, request).refresh_on_profile_update).toBe(
      expected,
    );
  });

  test.each([
    ['size of the page', { viewport: { width: 1, height: 1 } }, false],
    ['policy', { engine_policy: { a: 1 } }, false],
    ['headless', { headless: true }, false],
    ['timeout', { timeout_seconds: 11 }, true],
    ['pace', { fill_rate_per_minute: 1 }, true],
    ['start_url', { start_url: 'x.example' }, true],
  ])('of the %s makes other browsers, or not', (_, request, same) => {
    expect(sameBrowser(before, mergeConfig(before, request))).toBe(same);
  });
});

test.each([
  [25, 240],
  [100, 60],
  [0, 60],
])('at %i %% a minute a client waits for %i s if it does not say', (rate, seconds) => {
  expect(fillSeconds({ config: { ...defaultConfig, fill_rate_per_minute: rate } } as PoolRow)).toBe(seconds);
});

test('its browsers are created without the options of a lease', () => {
  expect(browserOf({ config: { ...defaultConfig, start_url: 'x.example' } } as PoolRow)).not.toHaveProperty(
    'start_url',
  );
});
