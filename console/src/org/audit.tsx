import { Button, Group, SegmentedControl, Select, Text, TextInput } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { AuditLogEntry } from '../api/schema.gen.d.ts';
import { Listing, type Column } from '../parts/listing.tsx';
import { Empty, Refusal, Screen } from '../parts/parts.tsx';
import { Search } from '../parts/search.tsx';
import { Time } from '../parts/time.tsx';
import { exportEntries } from './audit-export.ts';
import { auditFilter, methods, spans, type AuditSearch } from './audit-search.ts';

const route = getRouteApi('/audit');
const PAGE = 100;

/** The audit log. */
export function Audit() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (changes: AuditSearch) => void navigate({ search: (old) => ({ ...old, ...changes }) });
  const save = useAct(() => exportEntries(auditFilter(search)));
  return (
    <Screen
      title="Audit log"
      actions={
        <Button variant="default" loading={save.isPending} onClick={() => save.mutate(undefined)}>
          Export
        </Button>
      }
    >
      <Group gap="sm">
        <Search
          label="Search"
          placeholder="Part of a path, a key's id, an address or a status"
          width={360}
          value={search.query ?? ''}
          change={(value) => change({ query: value || undefined })}
        />
        <Select
          aria-label="Method"
          placeholder="Every method"
          clearable
          w={160}
          data={methods}
          value={search.method ?? null}
          onChange={(value) => change({ method: value ?? undefined })}
        />
        <SegmentedControl
          aria-label="How far back"
          size="sm"
          value={String(search.days ?? 7)}
          onChange={(value) => change({ days: Number(value) })}
          data={spans.map((days) => ({ value: String(days), label: days === 1 ? '1 day' : `${days} days` }))}
        />
        <TextInput
          type="date"
          aria-label="Up to this day"
          value={search.until ?? ''}
          onChange={(event) => change({ until: event.currentTarget.value || undefined })}
        />
      </Group>
      <Refusal error={save.error} />
      {save.data && (
        <Text size="sm" component="output">
          {save.data.entries.toLocaleString('en')} entries were saved as a file of JSON lines.
          {save.data.more &&
            ` That is the most at once, newest first. Choose a shorter time, or use GET /audit-logs/export/chunk, for those before.`}
        </Text>
      )}
      <Entries key={JSON.stringify(search)} search={search} />
    </Screen>
  );
}

/** The pages so far, each by the token that names the next. */
function Entries({ search }: { search: AuditSearch }) {
  const [tokens, setTokens] = useState<string[]>([]);
  const token = tokens.at(-1);
  const entries = useLive(['audit', search, token], () =>
    askPage(
      api.GET('/audit-logs', {
        params: { query: { ...auditFilter(search), limit: PAGE, ...(token && { page_token: token }) } },
      }),
    ),
  );
  const offset = tokens.length * PAGE;
  const next = entries.data?.next;
  return (
    <Listing
      label="Audit log"
      page={entries}
      columns={columns}
      idOf={(entry) => `${entry.timestamp}${entry.method}${entry.path}${entry.user_id}${entry.duration_ms}`}
      offset={offset}
      size={PAGE}
      turn={(to) => setTokens((old) => (to < offset ? old.slice(0, -1) : next ? [...old, next] : old))}
      empty={
        <Empty title="Nothing was changed">
          Every request that may change something has an entry here. Look further back, or at other methods.
        </Empty>
      }
    />
  );
}

const columns: Column<AuditLogEntry>[] = [
  { name: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
  {
    name: 'Status',
    cell: ({ status }) => (
      <Text span size="sm" {...(status >= 400 && { c: 'red' })}>
        {status}
      </Text>
    ),
  },
  {
    name: 'Request',
    cell: ({ method, path }) => (
      <span className="wrap">
        {method} {path}
      </span>
    ),
  },
  { name: 'Key', wide: true, cell: ({ user_id }) => <span className="wrap">{user_id}</span> },
  { name: 'From', wide: true, cell: ({ client_ip }) => client_ip },
  { name: 'Took', wide: true, cell: ({ duration_ms }) => `${duration_ms} ms` },
];
