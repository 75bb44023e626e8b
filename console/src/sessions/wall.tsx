import { Paper, SimpleGrid, Text } from '@mantine/core';
import { memo, useEffect, useRef, useState } from 'react';
import { fetchRaw } from '../api/client.ts';
import type { Browser } from '../api/schema.gen.d.ts';
import { State } from '../parts/parts.tsx';
import { SessionLink } from './link.tsx';

/** The service takes a picture of a session every three seconds at most. */
const EVERY_MS = 4000;
/** Concurrent requests for pictures: a browser has six connections for all its tabs. */
const AT_ONCE = 2;

type Shown = Pick<Browser, 'session_id' | 'name' | 'state' | 'active_page' | 'start_url' | 'deleted_at'>;

/** Pictures of the sessions. Only those on the screen are fetched. */
export function Wall({ sessions }: { sessions: readonly Shown[] }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="sm" component="ul" className="wall" aria-label="Sessions">
      {sessions.map((session) => (
        <Tile key={session.session_id} session={session} />
      ))}
    </SimpleGrid>
  );
}

const Tile = memo(function Tile({ session }: { session: Shown }) {
  const { ref, picture } = usePicture(session.session_id, session.deleted_at === undefined);
  const shown = session.active_page?.title || session.active_page?.url || session.start_url;
  return (
    <Paper component="li" withBorder p="xs" ref={ref}>
      <div className="wall-picture">
        {picture ? (
          <img src={picture} alt={`What ${session.name || session.session_id} shows`} />
        ) : (
          <Text size="xs" c="dimmed">
            No picture
          </Text>
        )}
      </div>
      <SessionLink session={session} />
      <Text size="xs" c="dimmed" className="clip">
        <bdi>{shown ?? '–'}</bdi>
      </Text>
      <State of={session.state} />
    </Paper>
  );
});

/** The picture of a session, kept up to date while it is on the screen of a visible tab. */
function usePicture(id: string, isLive: boolean) {
  const ref = useRef<HTMLLIElement>(null);
  const [picture, setPicture] = useState<string>();
  useEffect(() => {
    const element = ref.current;
    if (!element || !isLive) return undefined;
    const over = new AbortController();
    let onScreen = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let shown: string | undefined;

    async function look(): Promise<void> {
      if (over.signal.aborted) return;
      timer = setTimeout(() => void look(), EVERY_MS);
      if (!onScreen || document.hidden) return;
      await inTurn(over.signal, async () => {
        const response = await fetchRaw(`/browsers/${encodeURIComponent(id)}/thumbnail`, { signal: over.signal });
        if (response.status !== 200) return;
        const next = URL.createObjectURL(await response.blob());
        if (shown) URL.revokeObjectURL(shown);
        shown = next;
        setPicture(next);
      }).catch(() => {}); // the list shows why: the session has ended, or the service is out of reach
    }

    const watching = new IntersectionObserver(([entry]) => {
      const appeared = entry?.isIntersecting === true && !onScreen;
      onScreen = entry?.isIntersecting === true;
      if (!appeared) return;
      clearTimeout(timer);
      void look();
    });
    watching.observe(element);
    return () => {
      over.abort();
      watching.disconnect();
      clearTimeout(timer);
      if (shown) URL.revokeObjectURL(shown);
      setPicture(undefined);
    };
  }, [id, isLive]);
  return { ref, picture };
}

let taken = 0;
const queue: (() => void)[] = [];

/** Runs the work when one of the few slots is free. */
async function inTurn(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  if (taken < AT_ONCE) taken++;
  else await new Promise<void>((resolve) => queue.push(resolve));
  try {
    if (!signal.aborted) await work();
  } finally {
    const next = queue.shift();
    if (next) next();
    else taken--;
  }
}
