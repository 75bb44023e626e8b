import { Alert, Button, Group, Stack, Table, Text, Title } from '@mantine/core';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { api, ask } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { ManagedAuth } from '../api/schema.gen.d.ts';
import { Fact, Facts } from '../parts/facts.tsx';
import { Copy, Empty, Refusal, Screen, State, Waiting } from '../parts/parts.tsx';
import { span, Time } from '../parts/time.tsx';
import { SessionLink } from '../sessions/link.tsx';
import { LoginActs } from './acts.tsx';
import { Flow } from './question.tsx';

const route = getRouteApi('/logins/$id');

/** One login: its state, its question and its history. */
export function Login() {
  const { id } = route.useParams();
  const navigate = useNavigate();
  const found = useLive(['logins', 'one', id], () =>
    ask(api.GET('/auth/connections/{id}', { params: { path: { id } } })),
  );
  const login = found.data;
  if (found.isPending) return <Waiting />;
  if (!login) return <Refusal error={found.error} />;
  const failed = ['FAILED', 'EXPIRED', 'CANCELED'].includes(login.flow_status ?? '');
  return (
    <Screen
      title={
        <Group gap="sm">
          <bdi>{login.domain}</bdi>
          <State of={login.status === 'AUTHENTICATED' ? 'signed in' : 'needs a login'} />
        </Group>
      }
      actions={<LoginActs login={login} left={() => void navigate({ to: '/logins' })} />}
    >
      <Refusal error={found.error} />
      {login.flow_status === 'IN_PROGRESS' && <Flow login={login} />}
      {failed && (
        <Alert color="red" title={`The last login ${endings[login.flow_status ?? ''] ?? 'failed'}`} className="wrap">
          {login.error_message}
          {login.website_error && (
            <Text size="sm">
              The site said: <bdi>{login.website_error}</bdi>
            </Text>
          )}
        </Alert>
      )}
      <Known login={login} />
      <Timeline id={id} />
      <Explanation id={id} />
    </Screen>
  );
}

const endings: Record<string, string> = {
  FAILED: 'failed',
  EXPIRED: 'was not answered in time',
  CANCELED: 'was cancelled',
};

function Known({ login }: { login: ManagedAuth }) {
  const { credential } = login;
  return (
    <Facts>
      <Fact name="Id">
        {login.id} <Copy value={login.id} label="Copy the id" />
      </Fact>
      <Fact name="Profile">
        <Link to="/profiles" className="link" search={{ query: login.profile_name }}>
          <bdi>{login.profile_name}</bdi>
        </Link>
      </Fact>
      {login.login_url && <Fact name="Login page">{login.login_url}</Fact>}
      <Fact name="Credential">{credential?.name ?? credential?.path ?? 'none: a person is asked'}</Fact>
      <Fact name="Checked">
        <Time at={login.last_auth_check_at} />
        {login.health_checks && login.health_check_interval
          ? `, every ${span(login.health_check_interval * 1000)}`
          : ', not on schedule'}
      </Fact>
      <Fact name="Logs in again by itself">
        {login.can_reauth ? 'yes' : 'no'}
        {login.can_reauth_reason && `: ${login.can_reauth_reason.replaceAll('_', ' ')}`}
      </Fact>
      {login.browser_session_id && (
        <Fact name="Session">
          <SessionLink session={{ session_id: login.browser_session_id }} />
        </Fact>
      )}
    </Facts>
  );
}

function Timeline({ id }: { id: string }) {
  const events = useLive(['logins', 'timeline', id], () =>
    ask(api.GET('/auth/connections/{id}/timeline', { params: { path: { id }, query: { limit: 50 } } })),
  );
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h5">
        Logins and checks
      </Title>
      <Refusal error={events.error} />
      {events.data?.length === 0 && <Empty title="Nothing has run yet" />}
      {(events.data?.length ?? 0) > 0 && (
        <Table verticalSpacing={6} aria-label="Logins and checks">
          <Table.Tbody>
            {events.data?.map((event) => (
              <Table.Tr key={event.id}>
                <Table.Td className="nowrap">{kinds[event.type]}</Table.Td>
                <Table.Td>
                  <State of={event.status.toLowerCase().replaceAll('_', ' ')} />
                </Table.Td>
                <Table.Td className="wide-only wrap">
                  {event.error_message}
                  {event.website_error && (
                    <Text size="xs" c="dimmed">
                      <bdi>{event.website_error}</bdi>
                    </Text>
                  )}
                </Table.Td>
                <Table.Td className="wide-only">
                  {event.browser_session_id && <SessionLink session={{ session_id: event.browser_session_id }} />}
                </Table.Td>
                <Table.Td ta="right">
                  <Time at={event.timestamp} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}

const kinds = { login: 'Login', reauth: 'Login by itself', health_check: 'Check' };

/** The page snapshots of a login and its decisions. Loaded on request, because it is long and seldom needed. */
function Explanation({ id }: { id: string }) {
  const explain = useAct(() => ask(api.POST('/auth/connections/{id}/explain', { params: { path: { id } } })));
  return (
    <Stack gap="xs" component="section">
      <Group>
        <Button size="xs" variant="default" loading={explain.isPending} onClick={() => explain.mutate(undefined)}>
          Explain the newest login
        </Button>
      </Group>
      <Refusal error={explain.error} />
      {explain.data?.records.length === 0 && <Text size="sm">No login has looked at a page yet.</Text>}
      {(explain.data?.records.length ?? 0) > 0 && (
        <ol className="steps">
          {explain.data?.records.map((record, index) => (
            <li key={`${index}${record.at}`}>
              <Text size="sm">{record.decision}</Text>
              <Text size="xs" c="dimmed" className="wrap">
                <bdi>{record.title}</bdi> {record.url}
              </Text>
              {record.evidence.map((line, at) => (
                <Text key={`${at}${line}`} size="xs" c="dimmed" className="wrap">
                  <bdi>{line}</bdi>
                </Text>
              ))}
            </li>
          ))}
        </ol>
      )}
    </Stack>
  );
}
