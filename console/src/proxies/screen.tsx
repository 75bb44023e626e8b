import { Button, Group } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { Proxy } from '../api/schema.gen.d.ts';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Destroy, Empty, Refusal, Screen, State } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

const route = getRouteApi('/proxies');
const command = `curl -X POST ${location.origin}/proxies \\
  -H "Authorization: Bearer $CORRAL_API_KEY" -H "Content-Type: application/json" \\
  -d '{"type": "custom", "name": "office", "protocol": "http", "config": {"host": "proxy.example.com", "port": 3128}}'`;

export function Proxies() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const proxies = useLive(['proxies', query, offset], () =>
    askPage(api.GET('/proxies', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  return (
    <Screen title="Proxies">
      <Listing
        label="Proxies"
        page={proxies}
        columns={columns}
        idOf={({ id }) => id ?? ''}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No proxy" command={command}>
            A proxy is a way out for the traffic of sessions, checked now and then.
          </Empty>
        }
      />
    </Screen>
  );
}

const columns: Column<Proxy>[] = [
  { name: 'Proxy', cell: ({ name, id }) => <bdi className="clip">{name ?? id}</bdi> },
  { name: 'Status', cell: ({ status }) => <State of={status} /> },
  { name: 'Kind', wide: true, cell: ({ type, protocol }) => `${type}${protocol ? `, ${protocol}` : ''}` },
  { name: 'Address', wide: true, cell: ({ ip_address }) => ip_address ?? '–' },
  { name: 'Checked', wide: true, cell: ({ last_checked }) => <Time at={last_checked} /> },
  { name: '', cell: (proxy) => <Acts proxy={proxy} /> },
];

function Acts({ proxy }: { proxy: Proxy }) {
  const id = proxy.id ?? '';
  const check = useAct(() => ask(api.POST('/proxies/{id}/check', { params: { path: { id } }, body: {} })));
  return (
    <>
      <Group gap={4} justify="flex-end">
        <Button size="xs" variant="light" loading={check.isPending} onClick={() => check.mutate(undefined)}>
          Check
        </Button>
        <Destroy
          label="Delete"
          size="xs"
          subtle
          title={`Delete ${proxy.name ?? id}?`}
          ends="Sessions and pools that name this proxy cannot be started with it any more."
          act={() => ask(api.DELETE('/proxies/{id}', { params: { path: { id } } }))}
        />
      </Group>
      <Refusal error={check.error} />
    </>
  );
}
