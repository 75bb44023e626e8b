import { expect, test } from 'vitest';
import { fingerprints } from './fingerprint.ts';

test('a session that ends while its cookies are asked for fails the look, and leaves no rejection behind', async () => {
  const refused = () => Promise.reject(new Error('The session is over.'));
  const patience = { main: 1000, frame: 1000 };
  // Vitest fails the run for an unhandled rejection.
  const state = fingerprints({ patience, ask: refused } as never, { worlds: refused } as never, {} as never);
  await expect(state({ sessionId: 'page' } as never)).rejects.toThrow('The session is over.');
});
