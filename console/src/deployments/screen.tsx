import { Anchor, Stack, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api, ask, askPage } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { Deployment, Invocation } from '../api/schema.gen.d.ts';
import { reason, removal } from '../parts/columns.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Screen, State } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

const route = getRouteApi('/deployments');

/** Deployed apps and their invocations. */
export function Deployments() {
  const { offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const deployments = useLive(['deployments', offset], () =>
    askPage(api.GET('/deployments', { params: { query: { limit: pageSize, offset } } })),
  );
  const invocations = useLive(['invocations'], () =>
    askPage(api.GET('/invocations', { params: { query: { limit: 20 } } })),
  );
  return (
    <Screen title="Apps">
      <Listing
        label="Deployments"
        page={deployments}
        columns={deploymentColumns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No app is deployed" command="npx corral deploy . --entrypoint index.ts">
            An app is your own code that runs next to the browsers. This command deploys the current directory; see
            docs/deployments.md.
          </Empty>
        }
      />
      {(invocations.data?.items.length ?? 0) > 0 && (
        <Stack gap="xs">
          <Title order={2} size="h5">
            Newest invocations
          </Title>
          <Listing
            label="Invocations"
            page={invocations}
            columns={invocationColumns}
            idOf={({ id }) => id}
            empty={null}
          />
        </Stack>
      )}
    </Screen>
  );
}

const deploymentColumns: Column<Deployment>[] = [
  { name: 'Entry point', cell: ({ entrypoint_rel_path }) => <bdi className="clip">{entrypoint_rel_path}</bdi> },
  { name: 'Status', cell: ({ status }) => <State of={status} /> },
  reason,
  { name: 'Made', cell: ({ created_at }) => <Time at={created_at} /> },
  removal(({ id, entrypoint_rel_path }) => ({
    title: `Delete the deployment of ${entrypoint_rel_path}?`,
    ends: 'Its invocations that run are ended, and its actions cannot be invoked any more.',
    act: () => ask(api.DELETE('/deployments/{id}', { params: { path: { id } } })),
  })),
];

const invocationColumns: Column<Invocation>[] = [
  {
    name: 'Action',
    cell: ({ id, app_name, action_name }) => (
      <Anchor component={Link} to={`/deployments/invocations/${encodeURIComponent(id)}`} size="sm" className="clip">
        <bdi>{`${app_name} ${action_name}`}</bdi>
      </Anchor>
    ),
  },
  { name: 'Status', cell: ({ status }) => <State of={status} /> },
  reason,
  { name: 'Started', cell: ({ started_at }) => <Time at={started_at} /> },
];
