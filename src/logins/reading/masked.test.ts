import { expect, test } from 'vitest';
import { maskedTarget } from './masked.ts';

test.each([
  ['Send a code to a***@example.com now', 'a***@example.com'],
  ['Text •••• 42', '•••• 42'],
  ['Call +49 *** 17', '+49 *** 17'],
  ['Mail to jane.doe@mail.example.com', 'jane.doe@mail.example.com'],
  ['The phone ending in 42', 'ending in 42'],
  ['Another way', undefined],
])('%j goes to %j', (text, target) => expect(maskedTarget(text)).toBe(target));
