import { expect, test } from 'vitest';
import { killAtMoments } from '../support/soak-moments.ts';
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

test(
  'twenty kills in the middle of logins, apps, recordings, captures, live views and profile saves affect only the killed session or app',
  { timeout: 600_000 },
  async () => {
    const { seed, leftovers, surprises } = await killAtMoments({ moments: 20 });
    expect({ leftovers, surprises }, `again with: npm run soak -- --sessions 0 --moments 20 --seed ${seed}`).toEqual({
      leftovers: [],
      surprises: [],
    });
  },
);
