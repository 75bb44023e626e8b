import { Alert, Anchor, Group, Paper, Progress, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api, ask } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { Browser, BrowserPool } from '../api/schema.gen.d.ts';
import { Empty, Refusal, Screen, State, Waiting } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';
import { create } from '../sessions/commands.ts';
import { SessionLink } from '../sessions/link.tsx';
import { useReadiness } from './readiness.ts';
import { NodeCells } from './node-cells.tsx';

/** The first screen: the state of the service, its load, and recent failures. */
export function Overview() {
  const health = useReadiness();
  const running = useLive(['sessions', 'newest'], () => ask(api.GET('/browsers', { params: { query: { limit: 8 } } })));
  const pools = useLive(['pools', 'overview'], () =>
    ask(api.GET('/browser_pools', { params: { query: { limit: 8 } } })),
  );
  const ended = useLive(
    ['sessions', 'ended'],
    () => ask(api.GET('/browsers', { params: { query: { limit: 50, status: 'deleted' } } })),
    { every: 5000 },
  );
  const refused = useLive(['audit', 'refused'], refusals, { every: 5000 });
  if (health.isPending) return <Waiting />;

  const nodes = health.data?.parts.flatMap((part) => part.nodes ?? []) ?? [];
  const failed = (ended.data ?? []).filter(({ ended_reason }) => ended_reason && isFault[ended_reason]).slice(0, 5);
  const faulty = health.data?.parts.filter(({ ok }) => !ok) ?? [];
  return (
    <Screen title="Overview" actions={<State of={health.data?.status} />}>
      <Refusal error={health.error} />
      {faulty.map(({ name, detail }) => (
        <Alert key={name} color="yellow" title={name} className="wrap">
          {detail}
        </Alert>
      ))}
      <Load nodes={nodes} version={health.data?.version} pools={pools.data} />
      <Section title="Newest sessions" to="/sessions">
        <Refusal error={running.error} />
        {running.data && <NewestSessions sessions={running.data} />}
      </Section>
      {failed.length > 0 && (
        <Section title="Sessions that ended badly">
          <Table verticalSpacing={6} aria-label="Sessions that ended badly">
            <Table.Tbody>
              {failed.map((session) => (
                <Table.Tr key={session.session_id}>
                  <Table.Td>
                    <SessionLink session={session} />
                  </Table.Td>
                  <Table.Td className="wrap">{session.ended_detail ?? session.ended_reason}</Table.Td>
                  <Table.Td ta="right">
                    <Time at={session.deleted_at} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Section>
      )}
      {(refused.data?.length ?? 0) > 0 && (
        <Section title="Requests that were refused in the last hour">
          <Table verticalSpacing={6} aria-label="Refused requests">
            <Table.Tbody>
              {refused.data?.map((entry) => (
                <Table.Tr key={`${entry.timestamp}${entry.path}`}>
                  <Table.Td>{entry.status}</Table.Td>
                  <Table.Td className="wrap">
                    {entry.method} {entry.path}
                  </Table.Td>
                  <Table.Td ta="right">
                    <Time at={entry.timestamp} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Section>
      )}
      {nodes.length > 1 && (
        <Section title="Nodes">
          <Table verticalSpacing={6} aria-label="Nodes">
            <Table.Tbody>
              {nodes.map((node) => (
                <Table.Tr key={node.id}>
                  <NodeCells node={node} />
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Section>
      )}
    </Screen>
  );
}

/** How much of the service is in use. */
function Load({
  nodes,
  version,
  pools,
}: {
  nodes: readonly { capacity: number; running: number }[];
  version: string | undefined;
  pools: BrowserPool[] | undefined;
}) {
  const places = nodes.reduce((sum, node) => sum + node.capacity, 0);
  const taken = nodes.reduce((sum, node) => sum + node.running, 0);
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }}>
      <Figure label="Sessions running" value={`${taken} of ${places}`}>
        <Progress value={places ? (100 * taken) / places : 0} mt="xs" aria-label="Places taken" />
      </Figure>
      <Figure label="Nodes" value={String(nodes.length)}>
        <Text size="xs" c="dimmed" mt={4}>
          version {version}
        </Text>
      </Figure>
      <Figure label="Waiting for a pool's browser" value={String(waiting(pools))}>
        <Text size="xs" c="dimmed" mt={4}>
          {pools?.length ?? 0} {pools?.length === 1 ? 'pool' : 'pools'}
        </Text>
      </Figure>
    </SimpleGrid>
  );
}

function NewestSessions({ sessions }: { sessions: Browser[] }) {
  if (sessions.length === 0)
    return (
      <Empty title="No browser is running" command={create()}>
        Start one with the API, and it appears here within seconds.
      </Empty>
    );
  return (
    <Table verticalSpacing={6} aria-label="Newest sessions">
      <Table.Tbody>
        {sessions.map((session) => (
          <Table.Tr key={session.session_id}>
            <Table.Td>
              <SessionLink session={session} />
            </Table.Td>
            <Table.Td>
              <State of={session.state} />
            </Table.Td>
            <Table.Td className="wide-only">
              <Text size="sm" c="dimmed" className="clip">
                {session.active_page?.title || session.active_page?.url}
              </Text>
            </Table.Td>
            <Table.Td ta="right">
              <Time at={session.created_at} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** The reasons of ends that no client requested. A new reason in the API must be added here, or the console does not compile. */
const isFault: Record<NonNullable<Browser['ended_reason']>, boolean> = {
  deleted: false,
  idle: false,
  shutdown: false,
  did_not_start: true,
  crashed: true,
  service_restarted: true,
  node_lost: true,
  retired: false,
  project_closed: false,
  disk_limit: true,
  disk_full: true,
  fault: true,
};

const waiting = (pools: BrowserPool[] | undefined) =>
  (pools ?? []).reduce((sum, { waiting_count }) => sum + waiting_count, 0);

async function refusals() {
  const query = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 60_000).toISOString(),
  };
  const entries = await ask(api.GET('/audit-logs', { params: { query: { ...query, limit: 100 } } }));
  return entries.filter(({ status }) => status >= 400).slice(0, 5);
}

function Figure({ label, value, children }: { label: string; value: string; children?: ReactNode }) {
  return (
    <Paper withBorder p="md" radius="md">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text fz={26} fw={600} lh={1.2}>
        {value}
      </Text>
      {children}
    </Paper>
  );
}

function Section({ title, to, children }: { title: string; to?: '/sessions'; children: ReactNode }) {
  return (
    <Stack gap="xs" component="section">
      <Group justify="space-between">
        <Title order={2} size="h5">
          {title}
        </Title>
        {to && (
          <Anchor component={Link} to={to} size="sm">
            All
          </Anchor>
        )}
      </Group>
      {children}
    </Stack>
  );
}
