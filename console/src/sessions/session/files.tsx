import { Anchor, Breadcrumbs, Button, FileButton, Group, Stack, Table } from '@mantine/core';
import { useState } from 'react';
import { api, ask, fetchRaw } from '../../api/client.ts';
import { useAct, useLive } from '../../api/live.ts';
import type { FileInfo } from '../../api/schema.gen.d.ts';
import { Destroy, Empty, Refusal, Waiting } from '../../parts/parts.tsx';
import { bytes, Time } from '../../parts/time.tsx';
import type { Part } from './part.ts';

/** The session's files, as its own processes see them. */
export function Files({ session }: Part) {
  const id = session.session_id;
  const [path, setPath] = useState('/home/corral');
  // Read once, and after each action here: reading files counts as use, so polling would prevent the idle timeout.
  const list = useLive(
    ['files', id, path],
    () => ask(api.GET('/browsers/{id}/fs/list_files', { params: { path: { id }, query: { path } } })),
    { every: false },
  );
  const upload = useAct(async (files: File[]) => {
    for (const file of files)
      await fetchRaw(
        `/browsers/${encodeURIComponent(id)}/fs/write_file?path=${encodeURIComponent(join(path, file.name))}`,
        {
          method: 'PUT',
          body: file,
          headers: { 'Content-Type': 'application/octet-stream' },
        },
      );
  });
  const steps = path.split('/').filter(Boolean);
  const entries = [...(list.data ?? [])].sort(
    (a, b) => Number(b.is_dir) - Number(a.is_dir) || a.name.localeCompare(b.name),
  );
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Breadcrumbs>
          <Anchor component="button" type="button" onClick={() => setPath('/')}>
            /
          </Anchor>
          {steps.map((step, index) => (
            <Anchor
              key={`${index}${step}`}
              component="button"
              type="button"
              onClick={() => setPath(`/${steps.slice(0, index + 1).join('/')}`)}
            >
              <bdi>{step}</bdi>
            </Anchor>
          ))}
        </Breadcrumbs>
        <FileButton onChange={(files) => upload.mutate(files)} multiple>
          {(props) => (
            <Button {...props} variant="light" size="xs" loading={upload.isPending}>
              Upload here
            </Button>
          )}
        </FileButton>
      </Group>
      <Refusal error={list.error ?? upload.error} />
      {list.isPending && <Waiting />}
      {list.data?.length === 0 && <Empty title="This directory is empty" />}
      {entries.length > 0 && (
        <Table verticalSpacing={4} aria-label={`Files in ${path}`}>
          <Table.Tbody>
            {entries.map((entry) => (
              <Table.Tr key={entry.path}>
                <Table.Td>
                  {entry.is_dir ? (
                    <Anchor
                      component="button"
                      type="button"
                      size="sm"
                      onClick={() => setPath(entry.path)}
                      className="clip"
                    >
                      <bdi>{entry.name}</bdi>/
                    </Anchor>
                  ) : (
                    <span className="clip">
                      <bdi>{entry.name}</bdi>
                    </span>
                  )}
                </Table.Td>
                <Table.Td className="nowrap">{entry.is_dir ? '' : bytes(entry.size_bytes)}</Table.Td>
                <Table.Td className="wide-only">
                  <Time at={entry.mod_time} />
                </Table.Td>
                <Table.Td>
                  <Group gap={4} justify="flex-end" wrap="nowrap">
                    {!entry.is_dir && session.base_url && (
                      <Button
                        component="a"
                        href={`${session.base_url}/fs/read_file?path=${encodeURIComponent(entry.path)}`}
                        download={entry.name}
                        rel="noopener noreferrer"
                        size="compact-xs"
                        variant="subtle"
                      >
                        Download
                      </Button>
                    )}
                    {!entry.is_dir && (
                      <Destroy
                        label="Delete"
                        size="xs"
                        subtle
                        title={`Delete ${entry.name}?`}
                        ends="The file is gone for the session's programs at once."
                        act={async () => {
                          await remove(id, entry);
                          await list.refetch();
                        }}
                      />
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

const join = (folder: string, name: string) => `${folder.replace(/\/$/, '')}/${name}`;

const remove = (id: string, { path }: FileInfo) =>
  ask(api.PUT('/browsers/{id}/fs/delete_file', { params: { path: { id } }, body: { path } }));
