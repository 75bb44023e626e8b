import { expect, test } from 'vitest';
import type { LiveSession } from './live-session.ts';
import { restarts } from './restarts.ts';
import type { SessionRow } from './store.ts';

test('a session does not idle out while a profile is unpacked for it; if it ends all the same, nothing of that is left', async () => {
  const seen: string[] = [];
  const note = (what: string) => async () => void seen.push(what);
  const session = {
    hold: async () => (seen.push('held'), { release: () => seen.push('released') }),
    restart: async () => Promise.reject(new Error('it has ended')),
    ending: undefined as string | undefined,
    end: note('ended'),
  };
  const { attachProfile } = restarts({
    store: { attachProfile: async () => ({}), detachProfile: note('detached'), find: async () => undefined },
    profiles: { choose: async () => ({ id: 'p' }), open: async () => undefined },
    browsers: {
      async unpackBeside() {
        seen.push('unpacked');
        session.ending = 'deleted';
        return { swap: note('swapped'), discard: note('discarded') };
      },
      remove: note('removed'),
    },
    roster: { get: () => session as unknown as LiveSession },
  } as unknown as Parameters<typeof restarts>[0]);
  const row = { id: 's', project_id: 'x', headless: true } as SessionRow;
  await expect(attachProfile(row, { id: 'p' })).rejects.toThrow('it has ended');
  expect(seen).toEqual(['held', 'unpacked', 'discarded', 'detached', 'ended', 'removed', 'released']);
});
