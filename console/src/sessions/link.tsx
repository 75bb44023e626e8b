import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';

/** A session by its name, or its id when it has none. Names are of users: any script and direction. */
export function SessionLink({ session }: { session: { session_id: string; name?: string } }) {
  return (
    <Anchor component={Link} to={`/sessions/${encodeURIComponent(session.session_id)}`} size="sm" className="clip">
      <bdi>{session.name || session.session_id}</bdi>
    </Anchor>
  );
}
