import { Alert, NumberInput, Stack, TextInput } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { ApiKey } from '../api/schema.gen.d.ts';
import { removal } from '../parts/columns.tsx';
import { Dialog, Form, useText } from '../parts/form.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Screen, Snippet } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

const route = getRouteApi('/keys');

export function Keys() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const keys = useLive(['keys', query, offset], () =>
    askPage(
      api.GET('/org/api_keys', {
        params: { query: { limit: pageSize, offset, sort_direction: 'desc', ...(query && { query }) } },
      }),
    ),
  );
  return (
    <Screen title="API keys" actions={<NewKey />}>
      <Listing
        label="API keys"
        page={keys}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={<Empty title="No key">Programs use the API with a key. Make one here, or with the command line.</Empty>}
      />
    </Screen>
  );
}

const columns: Column<ApiKey>[] = [
  { name: 'Name', cell: ({ name }) => <bdi className="clip">{name}</bdi> },
  { name: 'Key', cell: ({ masked_key }) => <code className="nowrap">{masked_key}</code> },
  { name: 'Project', wide: true, cell: ({ project_name }) => project_name ?? 'all' },
  { name: 'Made', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Ends', wide: true, cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : 'never') },
  removal(
    ({ id, name }) => ({
      title: `Revoke ${name}?`,
      ends: 'Programs with this key are refused from now on, on every node. Addresses of sessions that were made with it stop working.',
      act: () => ask(api.DELETE('/org/api_keys/{id}', { params: { path: { id } } })),
    }),
    'Revoke',
  ),
];

const NewKey = () => <Dialog label="New key">{() => <Fields />}</Dialog>;

function Fields() {
  const name = useText();
  const [days, setDays] = useState<number | string>('');
  const make = useAct(() =>
    ask(api.POST('/org/api_keys', { body: { name: name.text, days_to_expire: days === '' ? null : Number(days) } })),
  );
  if (make.data)
    return (
      <Stack>
        <Alert color="teal" title="This is the only time the key is shown.">
          Copy it now. The service keeps its hash.
        </Alert>
        <Snippet text={make.data.key} label="the key" />
      </Stack>
    );
  return (
    <Form label="Make the key" act={make} send={() => make.mutate(undefined)}>
      <TextInput label="Name" {...name.input} required data-autofocus />
      <NumberInput
        label="Ends after"
        description="Empty: never"
        suffix=" days"
        min={1}
        max={3650}
        value={days}
        onChange={setDays}
      />
    </Form>
  );
}
