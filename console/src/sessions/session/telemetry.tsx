import { Alert, Badge, Button, Chip, Group, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { api, ask } from '../../api/client.ts';
import { useAct, useLive } from '../../api/live.ts';
import type { BrowserTelemetryEvent } from '../../api/schema.gen.d.ts';
import { Empty, Refusal, Waiting } from '../../parts/parts.tsx';
import { Time } from '../../parts/time.tsx';
import type { Part } from './part.ts';
import { openRequests } from './waits.ts';

type Category = BrowserTelemetryEvent['category'];

/** Every category of the API, in the order of the filter. */
const colours: Record<Category, string> = {
  console: 'grape',
  page: 'corral',
  network: 'cyan',
  interaction: 'lime',
  control: 'gray',
  connection: 'gray',
  system: 'red',
  screenshot: 'gray',
  captcha: 'gray',
  monitor: 'gray',
};
const categories = Object.keys(colours) as Category[];

/** The events of the browser, newest first. */
export function Telemetry({ session }: Part) {
  const id = session.session_id;
  const [only, setOnly] = useState<Category[]>([]);
  const events = useLive(['telemetry', id, only], () =>
    ask(
      api.GET('/browsers/{id}/telemetry/events', {
        params: { path: { id }, query: { limit: 100, order: 'desc', ...(only.length > 0 && { category: only }) } },
      }),
    ),
  );
  const capture = useAct(() =>
    ask(
      api.PATCH('/browsers/{id_or_name}', {
        params: { path: { id_or_name: id } },
        body: { telemetry: { enabled: true } },
      }),
    ),
  );
  const open = session.deleted_at === undefined ? openRequests(events.data ?? []) : [];
  const captures = Object.values(session.telemetry?.browser ?? {}).some((one) => one?.enabled);
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Chip.Group multiple value={only} onChange={(value) => setOnly(value)}>
          {categories.map((category) => (
            <Chip key={category} value={category} size="xs">
              {category}
            </Chip>
          ))}
        </Chip.Group>
      </Group>
      <Refusal error={events.error ?? capture.error} />
      {events.isPending && <Waiting />}
      {events.data?.length === 0 && (
        <Empty title={captures ? 'Nothing has happened yet' : 'Nothing was captured'}>
          {captures || session.deleted_at ? (
            'The timeline has navigations, requests, console lines, clicks and connections of sessions with telemetry.'
          ) : (
            <Stack align="center" gap="xs">
              Telemetry is off in this session. It can be switched on while it runs.
              <Button size="xs" variant="light" loading={capture.isPending} onClick={() => capture.mutate(undefined)}>
                Capture from now on
              </Button>
            </Stack>
          )}
        </Empty>
      )}
      {open.length > 0 && (
        <Alert color="yellow" title="It waits for an answer" className="wrap">
          {open.slice(0, 5).map(({ id: request, method, url, since }) => (
            <Text key={request} size="sm">
              {method} <bdi>{url}</bdi>, sent <Time at={since} />
            </Text>
          ))}
          {open.length > 5 && <Text size="sm">and {open.length - 5} more</Text>}
        </Alert>
      )}
      {(events.data?.length ?? 0) > 0 && (
        <Table aria-label="Timeline" verticalSpacing={4}>
          <Table.Tbody>
            {events.data?.map(({ seq, event }) => (
              <Table.Tr key={seq}>
                <Table.Td w={110}>
                  <Time at={new Date(event.ts / 1000).toISOString()} />
                </Table.Td>
                <Table.Td w={190} className="wide-only">
                  <Badge variant="light" color={colours[event.category]} tt="none" radius="sm" fw={500}>
                    {event.type}
                  </Badge>
                </Table.Td>
                <Table.Td className="wrap">
                  <span className="narrow-only quiet">{event.type}</span>
                  <Summary event={event} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}

/** A summary of an event in one line. */
function Summary({ event }: { event: BrowserTelemetryEvent }) {
  const data = ('data' in event ? event.data : undefined) as Record<string, unknown> | undefined;
  const picture = event.type === 'monitor_screenshot' && typeof data?.['png'] === 'string' ? data['png'] : undefined;
  if (picture) return <img src={`data:image/png;base64,${picture}`} alt="The page at this time" className="picture" />;
  const words = ['method', 'status', 'level', 'text', 'error_text', 'title', 'url', 'operation_id', 'key', 'reason']
    .map((field) => data?.[field])
    .filter((value) => typeof value === 'string' || typeof value === 'number')
    .slice(0, 4);
  const took = typeof data?.['duration_ms'] === 'number' ? ` (${data['duration_ms']} ms)` : '';
  return (
    <Text size="sm" component="span">
      <bdi>{words.join(' ') || event.type.replaceAll('_', ' ')}</bdi>
      {took}
    </Text>
  );
}
