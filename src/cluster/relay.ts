import type { EventBus, Events } from '../events.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import { nodeStore } from './store.ts';

/** The channel for events between nodes. */
export const relayChannel = 'corral_events';

/** Sends the events published here to the other nodes, and publishes theirs here. Each node gets an event once. */
export function relay({
  db,
  id,
  events,
  which,
  log,
}: {
  db: Db;
  id: string;
  events: EventBus;
  which: readonly (keyof Events)[];
  log: Log;
}) {
  const store = nodeStore(db);
  let hearing = false;
  for (const event of which) {
    events.on(event, (facts) => {
      if (hearing) return; // it came from another node
      store
        .tell(relayChannel, JSON.stringify({ from: id, event, facts }))
        .catch((error: Error) => log.error({ event, error: error.message }, 'node.others_not_told'));
    });
  }

  return {
    hear(payload: string) {
      const { from, event, facts } = JSON.parse(payload) as { from: string; event: keyof Events; facts: never };
      if (from === id) return;
      hearing = true;
      try {
        events.publish(event, facts);
      } finally {
        hearing = false;
      }
    },
  };
}
