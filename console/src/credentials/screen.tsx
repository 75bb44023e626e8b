import { getRouteApi } from '@tanstack/react-router';
import { api, ask, askPage } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { Credential } from '../api/schema.gen.d.ts';
import { removal } from '../parts/columns.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Screen } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';
import { Providers } from './providers.tsx';

const route = getRouteApi('/credentials');
const command = `curl -X POST ${location.origin}/credentials \\
  -H "Authorization: Bearer $CORRAL_API_KEY" -H "Content-Type: application/json" \\
  -d '{"name": "shop", "domain": "shop.example", "values": {"username": "me", "password": "…"}}'`;

export function Credentials() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const credentials = useLive(['credentials', query, offset], () =>
    askPage(api.GET('/credentials', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  return (
    <Screen title="Credentials">
      <Listing
        label="Credentials"
        page={credentials}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No credential" command={command}>
            The values that logins type into pages. They are encrypted, and the API never returns them.
          </Empty>
        }
      />
      <Providers />
    </Screen>
  );
}

const columns: Column<Credential>[] = [
  { name: 'Credential', cell: ({ name }) => <bdi className="wrap">{name}</bdi> },
  { name: 'Site', cell: ({ domain }) => <bdi className="wrap">{domain}</bdi> },
  {
    name: 'Has',
    wide: true,
    cell: ({ value_keys = [], has_totp_secret }) =>
      [...value_keys, ...(has_totp_secret ? ['one-time codes'] : [])].join(', '),
  },
  { name: 'Changed', wide: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
  removal(({ id, name }) => ({
    title: `Delete ${name}?`,
    ends: 'Its values are gone. Logins that use it have to ask a person.',
    act: () => ask(api.DELETE('/credentials/{id_or_name}', { params: { path: { id_or_name: id } } })),
  })),
];
