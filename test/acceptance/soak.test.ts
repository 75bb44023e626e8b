import { expect, test } from 'vitest';
import { soak } from '../support/soak.ts';

test(
  'thirty sessions with random kills of clients, browsers and the service leave nothing behind',
  { timeout: 600_000 },
  async () => {
    const { seed, leftovers, surprises } = await soak({ sessions: 30 });
    expect({ leftovers, surprises }, `again with: npm run soak -- --sessions 30 --seed ${seed}`).toEqual({
      leftovers: [],
      surprises: [],
    });
  },
);
