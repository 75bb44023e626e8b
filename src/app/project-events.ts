import { projectEventService } from '../project-events/service.ts';
import { projectEventStore } from '../project-events/store.ts';
import type { Ground } from './ground.ts';

const pruneEveryMs = 60_000;

/** The stream of events, for the console and for programs. */
export function openProjectEvents({ store, gate, opened, log }: Ground) {
  const { anchor, db } = store;
  const rows = projectEventStore(db);
  const projectEvents = projectEventService({ store: rows, lapseOf: (made) => gate.lapseOf(made), log });
  const prune = () =>
    rows.prune().catch((error: Error) => log.warn({ error: error.message }, 'project_events.not_pruned'));
  const pruning = setInterval(() => void prune(), pruneEveryMs).unref();
  opened(() => {
    clearInterval(pruning);
    projectEvents.close();
  });
  anchor.on('corral_project_events', () => projectEvents.hear());
  anchor.on('corral_org', () => projectEvents.recheck());
  anchor.onGap(() => (projectEvents.hear(), projectEvents.recheck()));
  return projectEvents;
}
