import { expect, test } from 'vitest';
import { optionsOf, refuseIdleForce } from './request.ts';

test.each([
  ['gpu', { headless: true, gpu: true }],
  ['kiosk_mode', { headless: true, kiosk_mode: true }],
  ['profile.force', { profile: { id: 'p', force: true } }],
  ['profile.force', { profile: { id: 'p', force: true, save_changes: false } }],
])('%s is refused where another field makes it meaningless', (field, request) => {
  expect(() => optionsOf(request)).toThrow(
    expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(field) }),
  );
});

test('what the schema fills in is never refused', () => {
  const profile = { id: 'p', force: false, save_changes: false };
  expect(optionsOf({ headless: true, kiosk_mode: false, gpu: false, profile })).toMatchObject({ headless: true });
  expect(() => refuseIdleForce({ id: 'p', force: true, save_changes: true })).not.toThrow();
});
