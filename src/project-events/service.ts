import type { Log } from '../lib/log.ts';
import type { ProjectEvent } from './schema.ts';
import type { PlacedEvent } from './store.ts';
import { eventTail, type TailOptions, type TailItem } from './tail.ts';

/** The expiry of a key raises no event, so keys are checked at this interval. */
const checkEveryMs = 15_000;

/** The key and the project that a stream is read with. */
export interface Reader {
  keyId: string;
  /** The key is bound to the project: it sees nothing else. */
  bound: boolean;
  projectId: string;
}

export type ProjectEventService = ReturnType<typeof projectEventService>;

/** Streams of events, each for as long as its key and its project last. */
export function projectEventService({
  lapseOf,
  log,
  ...options
}: TailOptions & {
  lapseOf: (made: { keyId: string; projectId: string }) => Promise<'key' | 'project' | undefined>;
}) {
  const tail = eventTail({ ...options, log });
  const open = new Map<Reader, AbortController>();
  const checking = setInterval(recheck, checkEveryMs).unref();
  let closed = false;

  function recheck(): void {
    for (const reader of open.keys()) void check(reader, log);
  }

  async function check(reader: Reader, log: Log): Promise<void> {
    try {
      if (await lapseOf({ keyId: reader.keyId, projectId: reader.projectId })) open.get(reader)?.abort();
    } catch (error) {
      // The database does not answer. Open streams stay open until it does.
      log.debug({ error: (error as Error).message }, 'project_events.authority_unknown');
    }
  }

  return {
    hear: () => tail.hear(),
    recheck,
    readers: () => open.size,

    /**
     * The frames of one stream: after an event, or from now on. `over` ends it, and is aborted when the key or the project has ended, or
     * the service is stopped.
     */
    async read(reader: Reader, from: number | undefined, over: AbortController) {
      const { signal } = over;
      open.set(reader, over);
      signal.addEventListener('abort', () => open.delete(reader), { once: true });
      if (closed) over.abort();
      const opened = await tail.read(from, reader.projectId, signal).catch((error: unknown) => {
        over.abort();
        throw error;
      });
      void check(reader, log); // the key or the project may have ended since the request was admitted
      return frames(reader, opened.from, opened.events);
    },

    close() {
      closed = true;
      clearInterval(checking);
      for (const over of open.values()) over.abort();
    },
  };
}

interface Frame {
  id: number;
  json: string;
}

async function* frames(reader: Reader, from: number, events: AsyncIterable<TailItem>): AsyncGenerator<Frame> {
  const ofStream = (id: number, type: 'stream.opened' | 'stream.gap'): Frame => {
    const event: ProjectEvent = { id, type, time: new Date().toISOString(), project_id: reader.projectId, data: {} };
    return { id, json: JSON.stringify(event) };
  };
  yield ofStream(from, 'stream.opened');
  for await (const item of events) {
    if ('gap' in item) yield ofStream(item.gap, 'stream.gap');
    else if (sees(reader, item.event)) yield { id: item.event.position, json: item.event.json };
  }
}

/** Events of the organisation are for keys of the organisation; of these, a bound key sees those of its own project. */
export const sees = (
  { projectId, bound }: Pick<Reader, 'projectId' | 'bound'>,
  event: Pick<PlacedEvent, 'projectId' | 'forOrg'>,
) => event.projectId === projectId || (event.forOrg && !bound);
