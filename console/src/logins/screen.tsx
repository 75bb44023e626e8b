import { Anchor, Text } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api, askPage } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { ManagedAuth } from '../api/schema.gen.d.ts';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Screen, State } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';
import { SessionLink } from '../sessions/link.tsx';
import { LoginActs, NewLogin } from './acts.tsx';

const route = getRouteApi('/logins');
const command = `curl -X POST ${location.origin}/auth/connections \\
  -H "Authorization: Bearer $CORRAL_API_KEY" -H "Content-Type: application/json" \\
  -d '{"domain": "example.com", "profile_name": "my-profile"}'`;

export function Logins() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const logins = useLive(['logins', query, offset], () =>
    askPage(api.GET('/auth/connections', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  return (
    <Screen title="Logins" actions={<NewLogin />}>
      <Listing
        label="Logins"
        page={logins}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No login" command={command}>
            A login keeps a profile signed in at a site. It types the values of a credential and asks a person for the
            others.
          </Empty>
        }
      />
    </Screen>
  );
}

const columns: Column<ManagedAuth>[] = [
  {
    name: 'Site',
    cell: ({ id, domain }) => (
      <Anchor component={Link} to={`/logins/${encodeURIComponent(id)}`} size="sm" className="clip">
        <bdi>{domain}</bdi>
      </Anchor>
    ),
  },
  { name: 'Profile', wide: true, cell: ({ profile_name }) => <bdi className="clip">{profile_name}</bdi> },
  {
    name: 'State',
    cell: ({ status, flow_status, flow_step, error_message }) => (
      <>
        <State of={status === 'AUTHENTICATED' ? 'signed in' : 'needs a login'} />
        {flow_status === 'IN_PROGRESS' && (
          <Text size="xs" {...(flow_step?.startsWith('AWAITING') ? { fw: 600 } : { c: 'dimmed' })}>
            {flow_step === 'AWAITING_INPUT' ? 'asks a question' : (flow_step ?? '').toLowerCase().replaceAll('_', ' ')}
          </Text>
        )}
        {flow_status === 'FAILED' && error_message && (
          <Text size="xs" c="red" className="wrap">
            {error_message}
          </Text>
        )}
      </>
    ),
  },
  { name: 'Signed in', wide: true, cell: ({ last_auth_at }) => <Time at={last_auth_at} /> },
  {
    name: 'Session',
    wide: true,
    cell: ({ browser_session_id }) =>
      browser_session_id ? <SessionLink session={{ session_id: browser_session_id }} /> : '–',
  },
  { name: '', cell: (login) => <LoginActs login={login} /> },
];
