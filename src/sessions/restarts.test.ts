import { expect, test } from 'vitest';
import type { LiveSession } from './live-session.ts';
import { restarts } from './restarts.ts';
import type { SessionRow } from './store.ts';

test('a profile that was unpacked for a session is removed if the session has ended', async () => {
  const seen: string[] = [];
  const note = (what: string) => async () => void seen.push(what);
  const session = {
    restart: async () => Promise.reject(new Error('it has ended')),
    ending: undefined as string | undefined,
    end: note('ended'),
  };
  const { prepareProfile } = restarts({
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
  const ready = await prepareProfile(row, { id: 'p' });
  await expect(ready.load()).rejects.toThrow('it has ended');
  await ready.discard();
  expect(seen).toEqual(['unpacked', 'discarded', 'detached', 'ended', 'removed']);
});
