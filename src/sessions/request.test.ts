import { expect, test } from 'vitest';
import { optionsOf, refuseIdleForce } from './request.ts';

test.each([
  ['gpu', { headless: true, gpu: true }],
  ['kiosk_mode', { headless: true, kiosk_mode: true }],
  ['viewport', { viewport: { width: 4096, height: 4097 } }],
  ['profile.force', { profile: { id: 'p', force: true } }],
  ['profile.force', { profile: { id: 'p', force: true, save_changes: false } }],
])('%s is refused where another field makes it meaningless', (field, request) => {
  expect(() => optionsOf(request)).toThrow(
    expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(field) }),
  );
});

test('a viewport of 4096 by 4096 has a display, and a larger one a headless session', () => {
  expect(optionsOf({ viewport: { width: 4096, height: 4096 } })).toMatchObject({ headless: false });
  expect(optionsOf({ headless: true, viewport: { width: 8192, height: 8192 } })).toMatchObject({ headless: true });
});

test('what the schema fills in is never refused', () => {
  const profile = { id: 'p', force: false, save_changes: false };
  expect(optionsOf({ headless: true, kiosk_mode: false, gpu: false, profile })).toMatchObject({ headless: true });
  expect(() => refuseIdleForce({ id: 'p', force: true, save_changes: true })).not.toThrow();
});
