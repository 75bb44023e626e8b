import { Alert, Group, Text } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { api, ask } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { Invocation as Invoked } from '../api/schema.gen.d.ts';
import { Fact, Facts } from '../parts/facts.tsx';
import { Log } from '../parts/log.tsx';
import { Copy, Destroy, Refusal, Screen, Section, Snippet, State, Waiting } from '../parts/parts.tsx';
import { span, Time, useNow } from '../parts/time.tsx';
import { SessionLink } from '../sessions/link.tsx';

const route = getRouteApi('/deployments/invocations/$id');
/** The shown part of inputs and results, which may have megabytes. */
const SHOWN = 20_000;

/** One run of an action: its log, its input and its result. */
export function Invocation() {
  const { id } = route.useParams();
  const at = { params: { path: { id } } };
  const found = useLive(['invocations', 'one', id], () => ask(api.GET('/invocations/{id}', at)));
  const invocation = found.data;
  const running = invocation?.status === 'queued' || invocation?.status === 'running';
  const sessions = useLive(['sessions', 'of', id], () => ask(api.GET('/invocations/{id}/browsers', at)), {
    enabled: running,
  });
  if (found.isPending) return <Waiting />;
  if (!invocation) return <Refusal error={found.error} />;
  return (
    <Screen
      title={
        <Group gap="sm">
          <bdi>
            {invocation.app_name} {invocation.action_name}
          </bdi>
          <State of={invocation.status} />
        </Group>
      }
      actions={
        running && (
          <Destroy
            label="Cancel"
            title="Cancel this invocation?"
            ends="Its process and its browsers end, and it counts as failed."
            act={() => ask(api.PATCH('/invocations/{id}', { ...at, body: { status: 'failed' } }))}
          />
        )
      }
    >
      <Refusal error={found.error} />
      {invocation.status === 'failed' && (
        <Alert color="red" title="It failed" className="wrap">
          <bdi>{invocation.status_reason}</bdi>
        </Alert>
      )}
      <Facts>
        <Fact name="Id">
          {invocation.id} <Copy value={invocation.id} label="Copy the id" />
        </Fact>
        <Fact name="Version">{invocation.version}</Fact>
        <Fact name="Started">
          <Time at={invocation.started_at} />
        </Fact>
        <Took {...invocation} />
        {running && (sessions.data?.browsers.length ?? 0) > 0 && (
          <Fact name="Sessions">
            {sessions.data?.browsers.map((session) => (
              <SessionLink key={session.session_id} session={session} />
            ))}
          </Fact>
        )}
      </Facts>
      <Section title="Log">
        <Log
          key={id}
          path={`/invocations/${encodeURIComponent(id)}/events`}
          waiting={running ? 'No line yet. New ones appear here as they are written.' : 'It wrote no line.'}
        />
      </Section>
      <Value title="Result" text={invocation.output} />
      <Value title="Input" text={invocation.payload} />
    </Screen>
  );
}

function Took({ started_at, finished_at }: Pick<Invoked, 'started_at' | 'finished_at'>) {
  const now = useNow();
  const end = finished_at ? Date.parse(finished_at) : now;
  return <Fact name={finished_at ? 'Took' : 'Runs for'}>{span(Math.max(0, end - Date.parse(started_at)))}</Fact>;
}

/** JSON text of the API, indented. */
function Value({ title, text }: { title: string; text: string | undefined }) {
  if (!text) return null;
  const whole = indented(text);
  return (
    <Section title={title}>
      <Snippet text={whole.slice(0, SHOWN)} label={`the ${title.toLowerCase()}`} />
      {whole.length > SHOWN && (
        <Text size="sm" c="dimmed">
          The first {SHOWN.toLocaleString('en')} characters. GET /invocations/… has all of it.
        </Text>
      )}
    </Section>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
