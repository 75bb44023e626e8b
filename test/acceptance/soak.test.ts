import { expect, test } from 'vitest';
import { killAtMoments } from '../support/soak-moments.ts';
import { soak } from '../support/soak.ts';

/** `npm run soak` does the same with hundreds of them. */
test(
  'twelve sessions with random kills of clients, browsers and the service leave nothing behind',
  { timeout: 600_000 },
  async () => {
    const { seed, leftovers, surprises } = await soak({ sessions: 12 });
    expect({ leftovers, surprises }, `again with: npm run soak -- --sessions 12 --seed ${seed}`).toEqual({
      leftovers: [],
      surprises: [],
    });
  },
);

/** One for each kind of work. */
test(
  'eight kills in the middle of logins, apps, recordings, captures, live views and profile saves affect only the killed session or app',
  { timeout: 600_000 },
  async () => {
    const { seed, leftovers, surprises } = await killAtMoments({ moments: 8 });
    expect({ leftovers, surprises }, `again with: npm run soak -- --sessions 0 --moments 8 --seed ${seed}`).toEqual({
      leftovers: [],
      surprises: [],
    });
  },
);
