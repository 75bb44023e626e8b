import { expect, test } from 'vitest';
import { colour, look, type Scheme } from './look.ts';

/** As the guidelines for accessible pages define it. */
function contrast(one: string, other: string): number {
  const light = (hex: string) =>
    [1, 3, 5]
      .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at]!, 0);
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high! + 0.05) / (low! + 0.05);
}

test.each<Scheme>(['light', 'dark'])('text is legible on every ground, in the %s', (scheme) => {
  for (const ground of ['page', 'ground', 'card', 'sunken'] as const)
    for (const ink of ['text', 'quiet', 'accent', 'good', 'warn', 'bad'] as const)
      expect(contrast(colour(ink, scheme), colour(ground, scheme)), `${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
  for (const [ink, ground] of [
    ['on-accent', 'accent'],
    ['on-accent', 'accent-pressed'],
    ['bad', 'bad-ground'],
  ] as const)
    expect(contrast(colour(ink, scheme), colour(ground, scheme)), `${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
});

test('a page follows its reader, or has one scheme', () => {
  expect(look()).toMatch(/:root\{color-scheme:light;.*--text:#171a1f.*prefers-color-scheme:dark.*--text:#e8ebef/s);
  expect(look('dark')).not.toContain('#171a1f;--quiet');
  expect(look('dark')).toContain('color-scheme:dark');
});
