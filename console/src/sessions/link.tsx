import { useRouter } from '@tanstack/react-router';
import type { MouseEvent } from 'react';

/**
 * A link to a session by its name, or its id. Names may have any script and direction. A list has fifty of these, and each link of the
 * router listens to all its changes, so this link uses the router only on hover and click.
 */
export function SessionLink({ session }: { session: { session_id: string; name?: string } }) {
  const router = useRouter();
  const to = { to: '/sessions/$id', params: { id: session.session_id } } as const;
  const follow = (event: MouseEvent) => {
    const elsewhere = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (elsewhere) return; // in another tab or window, which is the browser's to open
    event.preventDefault();
    void router.navigate(to);
  };
  return (
    <a
      href={`${router.basepath}/sessions/${encodeURIComponent(session.session_id)}`}
      className="link clip"
      onClick={follow}
      onPointerEnter={() => void router.preloadRoute(to)}
    >
      <bdi>{session.name || session.session_id}</bdi>
    </a>
  );
}
