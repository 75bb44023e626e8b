import { Button, FileButton } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { api, ask, askPage, fetchRaw } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { Extension } from '../api/schema.gen.d.ts';
import { removal } from '../parts/columns.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Refusal, Screen } from '../parts/parts.tsx';
import { bytes, Time } from '../parts/time.tsx';

const route = getRouteApi('/extensions');

export function Extensions() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const extensions = useLive(['extensions', query, offset], () =>
    askPage(api.GET('/extensions', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  const upload = useAct(async (file: File) => {
    const body = new FormData();
    body.set('name', file.name.replace(/\.zip$/i, '').replace(/[^\w.-]+/g, '-') || 'extension');
    body.set('file', file);
    await fetchRaw('/extensions', { method: 'POST', body });
  });
  return (
    <Screen
      title="Extensions"
      actions={
        <FileButton accept=".zip,application/zip" onChange={(file) => file && upload.mutate(file)}>
          {(props) => (
            <Button {...props} loading={upload.isPending}>
              Upload a zip
            </Button>
          )}
        </FileButton>
      }
    >
      <Refusal error={upload.error} />
      <Listing
        label="Extensions"
        page={extensions}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No extension" command="npx corral extensions upload blocker.zip --name blocker">
            Upload an unpacked extension as a zip, and sessions can be started with it.
          </Empty>
        }
      />
    </Screen>
  );
}

const columns: Column<Extension>[] = [
  { name: 'Extension', cell: ({ name, id }) => <bdi className="clip">{name ?? id}</bdi> },
  { name: 'Size', cell: ({ size_bytes }) => <span className="nowrap">{bytes(size_bytes)}</span> },
  { name: 'Uploaded', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Last used', wide: true, cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  removal(({ id, name }) => ({
    title: `Delete ${name ?? id}?`,
    ends: 'New sessions cannot load it any more. Sessions that have loaded it keep it.',
    act: () => ask(api.DELETE('/extensions/{id_or_name}', { params: { path: { id_or_name: id } } })),
  })),
];
