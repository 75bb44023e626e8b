import { Alert, Button, Group, NumberInput, Stack, Switch, Text, TextInput } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { BrowserPool } from '../api/schema.gen.d.ts';
import { Dialog, Form, useOn, useText } from '../parts/form.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Destroy, Empty, Refusal, Screen } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

const route = getRouteApi('/pools');
const named = (pool: BrowserPool) => pool.name ?? pool.id;

export function Pools() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const pools = useLive(['pools', query, offset], () =>
    askPage(api.GET('/browser_pools', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  const failing = pools.data?.items.filter(({ last_error }) => last_error) ?? [];
  return (
    <Screen title="Pools" actions={<PoolForm />}>
      {failing.map((pool) => (
        <Alert key={pool.id} color="yellow" title={`${named(pool)} could not start a browser`} className="wrap">
          {pool.last_error?.message} <Time at={pool.last_error?.at} />
        </Alert>
      ))}
      <Listing
        label="Pools"
        page={pools}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No pool" command="npx corral pools create --name shop --size 3 --headless">
            A pool keeps browsers warm, so that a program gets one in milliseconds. Programs acquire a browser and
            release it. If all browsers are leased, a program waits.
          </Empty>
        }
      />
    </Screen>
  );
}

const columns: Column<BrowserPool>[] = [
  { name: 'Pool', cell: (pool) => <bdi className="clip">{named(pool)}</bdi> },
  { name: 'Idle', cell: ({ available_count }) => available_count },
  { name: 'Lent', cell: ({ acquired_count }) => acquired_count },
  {
    name: 'Waiting',
    cell: ({ waiting_count }) =>
      waiting_count > 0 ? (
        <Text c="orange" fw={600} span>
          {waiting_count}
        </Text>
      ) : (
        0
      ),
  },
  { name: 'Starting', wide: true, cell: ({ warming_count }) => warming_count },
  { name: 'Size', wide: true, cell: ({ browser_pool_config }) => browser_pool_config.size },
  { name: 'Made', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: '', cell: (pool) => <PoolActs pool={pool} /> },
];

function PoolActs({ pool }: { pool: BrowserPool }) {
  const at = { params: { path: { id_or_name: pool.id } } };
  const navigate = useNavigate();
  const acquire = useAct(
    () => ask(api.POST('/browser_pools/{id_or_name}/acquire', { ...at, body: { acquire_timeout_seconds: 30 } })),
    (session) => session && void navigate({ to: '/sessions/$id', params: { id: session.session_id } }),
  );
  return (
    <Stack gap={4}>
      <Group gap={4} justify="flex-end">
        <Button size="xs" variant="light" loading={acquire.isPending} onClick={() => acquire.mutate(undefined)}>
          Acquire
        </Button>
        <PoolForm pool={pool} />
        <Destroy
          label="Flush"
          size="xs"
          subtle
          title={`Flush ${named(pool)}?`}
          ends={`The ${pool.available_count} idle browsers end, and new ones take their place. Lent browsers stay.`}
          act={() => ask(api.POST('/browser_pools/{id_or_name}/flush', at))}
        />
        <Destroy
          label="Delete"
          size="xs"
          subtle
          title={`Delete ${named(pool)}?`}
          ends={`Its ${pool.available_count} idle browsers end, and waiting clients are refused. A pool with leased browsers is not deleted.`}
          act={() => ask(api.DELETE('/browser_pools/{id_or_name}', { ...at, body: {} }))}
        />
      </Group>
      <Refusal error={acquire.error} />
    </Stack>
  );
}

/** Creates or changes a pool. */
const PoolForm = ({ pool }: { pool?: BrowserPool }) => (
  <Dialog
    label={pool ? 'Edit' : 'New pool'}
    title={pool ? `Edit ${named(pool)}` : 'New pool'}
    {...(pool && { variant: 'subtle' })}
  >
    {(close) => <Fields pool={pool} close={close} />}
  </Dialog>
);

function Fields({ pool, close }: { pool?: BrowserPool | undefined; close: () => void }) {
  const config = pool?.browser_pool_config;
  const name = useText(pool?.name ?? '');
  const [size, setSize] = useState<number | string>(config?.size ?? 2);
  const headless = useOn(config?.headless ?? true);
  const startUrl = useText(config?.start_url ?? '');
  const save = useAct(() => {
    const body = {
      size: Number(size),
      headless: headless.on,
      ...(name.text && { name: name.text }),
      ...(startUrl.text && { start_url: startUrl.text }),
    };
    return pool
      ? ask(api.PATCH('/browser_pools/{id_or_name}', { params: { path: { id_or_name: pool.id } }, body }))
      : ask(api.POST('/browser_pools', { body }));
  }, close);
  return (
    <Form label={pool ? 'Save' : 'Make the pool'} act={save} send={() => save.mutate(undefined)}>
      <TextInput label="Name" {...name.input} data-autofocus />
      <NumberInput label="Browsers to keep" min={1} max={1000} value={size} onChange={setSize} required />
      <TextInput label="First page" placeholder="https://example.com" {...startUrl.input} />
      <Switch label="Headless" {...headless.input} />
    </Form>
  );
}
