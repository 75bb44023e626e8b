import { Alert, Button, Group, Tabs } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, type ComponentType } from 'react';
import { api, ask } from '../../api/client.ts';
import { useLive } from '../../api/live.ts';
import type { Browser } from '../../api/schema.gen.d.ts';
import { Destroy, Refusal, Screen, State, Waiting } from '../../parts/parts.tsx';
import { sessionTabs, type SessionTab } from '../tabs.ts';
import type { Part } from './part.ts';
import { View } from './view.tsx';

const route = getRouteApi('/sessions/$id');

/** The parts of a session's screen, and whether they are shown after its end. */
const parts: Record<SessionTab, { label: string; part: ComponentType<Part>; lasts?: boolean }> = {
  view: { label: 'Live view', part: View, lasts: true },
  files: { label: 'Files', part: lazy(() => import('./files.tsx').then(({ Files }) => ({ default: Files }))) },
  terminal: { label: 'Terminal', part: lazy(() => import('./terminal.tsx').then(({ Shell }) => ({ default: Shell }))) },
  logs: { label: 'Logs', part: lazy(() => import('./logs.tsx').then(({ Logs }) => ({ default: Logs }))), lasts: true },
  replays: {
    label: 'Replays',
    part: lazy(() => import('./replays.tsx').then(({ Replays }) => ({ default: Replays }))),
    lasts: true,
  },
  telemetry: {
    label: 'Timeline',
    part: lazy(() => import('./telemetry.tsx').then(({ Telemetry }) => ({ default: Telemetry }))),
    lasts: true,
  },
  code: { label: 'Code', part: lazy(() => import('./code.tsx').then(({ CodePart }) => ({ default: CodePart }))) },
};

export function Session() {
  const { id } = route.useParams();
  const { tab = 'view' } = route.useSearch();
  const navigate = useNavigate();
  const found = useLive(['session', id], () => look(id));
  // The list has the last known page. A request for the session itself asks its browser, so it is sent rarely.
  useLive(['session', id, 'page'], () => ask(single(id)), {
    every: 15_000,
    enabled: found.data?.deleted_at === undefined,
  });
  const session = found.data;
  if (found.isPending) return <Waiting />;
  if (!session) return <Refusal error={found.error} />;
  const ended = session.deleted_at !== undefined;
  const end = () => ask(api.DELETE('/browsers/{id_or_name}', { params: { path: { id_or_name: session.session_id } } }));
  const choose = (next: string | null) =>
    void navigate({
      to: '/sessions/$id',
      params: { id },
      search: next === 'view' ? {} : { tab: next as SessionTab },
      replace: true,
    });
  return (
    <Screen
      title={
        <Group gap="sm">
          <bdi>{session.name || session.session_id}</bdi>
          <State of={session.state} />
        </Group>
      }
      actions={
        ended ? (
          <Button variant="default" onClick={() => void navigate({ to: '/sessions' })}>
            All sessions
          </Button>
        ) : (
          <>
            {session.pool && <Release session={session} pool={session.pool.id} />}
            <Destroy
              label="End session"
              title="End this session?"
              ends={
                <>
                  Its browser is closed and every client is disconnected. Files that were not fetched are gone.{' '}
                  {session.profile && session.profile_save_changes
                    ? `The profile ${session.profile.name ?? session.profile.id} is saved first.`
                    : 'Nothing of it is saved.'}
                </>
              }
              act={async () => {
                await end();
                await found.refetch();
              }}
            />
          </>
        )
      }
    >
      <Refusal error={found.error} />
      {ended && (
        <Alert color="gray" title="This session has ended" className="wrap">
          {session.ended_detail ?? session.ended_reason}
        </Alert>
      )}
      <Tabs value={tab} onChange={choose} keepMounted={false}>
        <Tabs.List className="tabs">
          {sessionTabs.map((name) => (
            <Tabs.Tab key={name} value={name} disabled={ended && !parts[name].lasts}>
              {name === 'view' && ended ? 'Details' : parts[name].label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {sessionTabs.map((name) => {
          const { part: Shown } = parts[name];
          return (
            <Tabs.Panel key={name} value={name} pt="md">
              <Suspense fallback={<Waiting />}>
                <Shown session={session} />
              </Suspense>
            </Tabs.Panel>
          );
        })}
      </Tabs>
    </Screen>
  );
}

/** Releases the browser to its pool. */
function Release({ session, pool }: Part & { pool: string }) {
  const navigate = useNavigate();
  return (
    <Destroy
      label="Release"
      title="Give this browser back to its pool?"
      ends="Every client is disconnected, and the state of the browser is deleted. The next client in the queue gets a clean browser."
      act={async () => {
        const body = { session_id: session.session_id };
        await ask(api.POST('/browser_pools/{id_or_name}/release', { params: { path: { id_or_name: pool } }, body }));
        void navigate({ to: '/pools' });
      }}
    />
  );
}

/**
 * The session from the list, because each request for a session is an event of its telemetry. If the list does not contain it, the session
 * itself is requested: to find it by name, or for the error message.
 */
async function look(id: string): Promise<Browser> {
  const query = { query: id, status: 'all', limit: 5 } as const;
  const listed = await ask(api.GET('/browsers', { params: { query } }));
  return listed.find(({ session_id }) => session_id === id) ?? ask(single(id));
}

const single = (id: string) =>
  api.GET('/browsers/{id_or_name}', { params: { path: { id_or_name: id }, query: { include_deleted: true } } });
