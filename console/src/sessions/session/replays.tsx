import { Button, Group, Stack, Table, Text } from '@mantine/core';
import { api, ask } from '../../api/client.ts';
import { useAct, useLive } from '../../api/live.ts';
import { Empty, Refusal, Waiting } from '../../parts/parts.tsx';
import { bytes, Time } from '../../parts/time.tsx';
import type { Part } from './part.ts';

/** Videos of the session. */
export function Replays({ session }: Part) {
  const id = session.session_id;
  const running = session.deleted_at === undefined;
  const list = useLive(['replays', id], () => ask(api.GET('/browsers/{id}/replays', { params: { path: { id } } })), {
    every: 5000,
  });
  const record = useAct(() => ask(api.POST('/browsers/{id}/replays', { params: { path: { id } }, body: {} })));
  const stop = useAct((replay_id: string) =>
    ask(api.POST('/browsers/{id}/replays/{replay_id}/stop', { params: { path: { id, replay_id } } })),
  );
  return (
    <Stack gap="sm">
      {running && (
        <Group>
          <Button size="xs" variant="light" loading={record.isPending} onClick={() => record.mutate(undefined)}>
            Record from now on
          </Button>
        </Group>
      )}
      <Refusal error={list.error ?? record.error ?? stop.error} />
      {list.isPending && <Waiting />}
      {list.data?.length === 0 && (
        <Empty title="No replay">
          A replay is a video of the browser. It can be watched after the session has ended.
        </Empty>
      )}
      {(list.data?.length ?? 0) > 0 && (
        <Table aria-label="Replays" verticalSpacing="xs">
          <Table.Tbody>
            {list.data?.map((replay) => (
              <Table.Tr key={replay.replay_id}>
                <Table.Td>
                  <Time at={replay.started_at} />
                </Table.Td>
                <Table.Td>
                  {replay.finished_at ? bytes(replay.size_bytes) : 'recording'}
                  {replay.ended_reason && (
                    <Text size="xs" c="dimmed">
                      {replay.ended_reason}
                    </Text>
                  )}
                </Table.Td>
                <Table.Td>
                  <Group justify="flex-end" gap={4}>
                    {!replay.finished_at && (
                      <Button size="compact-sm" variant="subtle" onClick={() => stop.mutate(replay.replay_id)}>
                        Stop
                      </Button>
                    )}
                    {replay.finished_at && replay.replay_view_url && (
                      <Button
                        component="a"
                        href={replay.replay_view_url}
                        target="_blank"
                        rel="noopener noreferrer"
                        size="compact-sm"
                        variant="subtle"
                      >
                        Watch
                      </Button>
                    )}
                  </Group>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}
