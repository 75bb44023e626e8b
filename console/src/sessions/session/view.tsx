import { Badge, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, ask, type ApiError } from '../../api/client.ts';
import { Fact, Facts } from '../../parts/facts.tsx';
import { Copy, Refusal, Waiting } from '../../parts/parts.tsx';
import { bytes, span, Time } from '../../parts/time.tsx';
import type { Part } from './part.ts';

/** The live view and the properties of the session. */
export function View({ session }: Part) {
  const running = session.deleted_at === undefined;
  return (
    <Stack>
      {running && <Live session={session} />}
      <Known session={session} />
    </Stack>
  );
}

function Live({ session }: Part) {
  const [hands, setHands] = useState<'watch' | 'drive'>('watch');
  // A separate link for this screen. The link itself is read-only while the user only watches.
  const link = useQuery<{ url: string }, ApiError>({
    queryKey: ['live-view', session.session_id, hands],
    queryFn: () =>
      ask(
        api.POST('/browsers/{id_or_name}/live_view_links', {
          params: { path: { id_or_name: session.session_id } },
          body: { read_only: hands === 'watch', expires_in_seconds: 12 * 3600 },
        }),
      ),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    gcTime: 0,
  });
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <SegmentedControl
          aria-label="Watch or take over"
          value={hands}
          onChange={(value) => setHands(value)}
          data={[
            { value: 'watch', label: hands === 'watch' ? 'Watch' : 'Hand back' },
            { value: 'drive', label: 'Take over' },
          ]}
        />
        <Group gap="xs">
          <Text size="sm" c="dimmed">
            {hands === 'watch'
              ? 'Your mouse and keyboard do nothing here.'
              : 'You type and click in this browser, beside its programs.'}
          </Text>
          {link.data && (
            <Button
              component="a"
              href={link.data.url}
              target="_blank"
              rel="noopener noreferrer"
              variant="default"
              size="xs"
            >
              Open in a tab
            </Button>
          )}
        </Group>
      </Group>
      <Refusal error={link.error} />
      {link.isPending && <Waiting />}
      {link.data && (
        <iframe
          key={link.data.url}
          src={link.data.url}
          className="live-view"
          title={`Live view of ${session.name || session.session_id}`}
          allow="clipboard-read; clipboard-write; fullscreen"
          referrerPolicy="no-referrer"
        />
      )}
    </Stack>
  );
}

function Known({ session }: Part) {
  const { clients, viewport, profile, pool, tags = {} } = session;
  const connected = clients && Object.entries(clients).filter(([, count]) => count > 0);
  return (
    <Facts>
      <Fact name="Id">
        {session.session_id} <Copy value={session.session_id} label="Copy the id" />
      </Fact>
      {session.active_page && (
        <Fact name="Page">
          <bdi>{session.active_page.title}</bdi>{' '}
          <Text span size="sm" c="dimmed">
            {session.active_page.url}
          </Text>
        </Fact>
      )}
      <Fact name="Started">
        <Time at={session.created_at} />
        {session.usage && ` · awake for ${span(session.usage.uptime_ms)}`}
      </Fact>
      {session.deleted_at && (
        <Fact name="Ended">
          <Time at={session.deleted_at} />
        </Fact>
      )}
      {session.ends_at && !session.deleted_at && (
        <Fact name="Ends">
          <Time at={session.ends_at} /> unless it is used (idle timeout {span(session.timeout_seconds * 1000)})
        </Fact>
      )}
      {connected && (
        <Fact name="Clients">
          {connected.length === 0
            ? 'none'
            : connected.map(([kind, count]) => `${count} ${kind.replace('_', ' ')}`).join(', ')}
        </Fact>
      )}
      <Fact name="Browser">
        {session.headless ? 'headless' : 'headful'}
        {session.stealth && ', stealth'}
        {viewport && `, ${viewport.width} × ${viewport.height}`}
        {session.memory_bytes !== undefined && `, ${bytes(session.memory_bytes)} of memory`}
      </Fact>
      {profile && (
        <Fact name="Profile">
          <Link to="/profiles" className="link" search={{ query: profile.id }}>
            {profile.name ?? profile.id}
          </Link>
          {session.profile_save_changes ? ', saved when it ends' : ', not saved'}
        </Fact>
      )}
      {pool && (
        <Fact name="Pool">
          <Link to="/pools" className="link" search={{ query: pool.name ?? pool.id }}>
            {pool.name ?? pool.id}
          </Link>
        </Fact>
      )}
      {Object.keys(tags).length > 0 && (
        <Fact name="Tags">
          <Group gap={4}>
            {Object.entries(tags).map(([key, value]) => (
              <Badge key={key} variant="default" tt="none" radius="sm" fw={400}>
                {key}={value}
              </Badge>
            ))}
          </Group>
        </Fact>
      )}
      {session.node_id && <Fact name="Node">{session.node_id}</Fact>}
    </Facts>
  );
}
