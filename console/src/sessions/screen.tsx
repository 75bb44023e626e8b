import { Button, Group, SegmentedControl } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { api, askPage } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { Browser } from '../api/schema.gen.d.ts';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Empty, Screen, State } from '../parts/parts.tsx';
import { Search } from '../parts/search.tsx';
import { Time } from '../parts/time.tsx';
import { create } from './commands.ts';
import { SessionLink } from './link.tsx';
import { StartSession } from './start.tsx';
import { Wall } from './wall.tsx';

const route = getRouteApi('/sessions');

export function Sessions() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { query, status = 'active', offset = 0 } = search;
  const tags = readTags(search.tags ?? '');
  const sessions = useLive(['sessions', query, status, search.tags, offset], () =>
    askPage(
      api.GET('/browsers', {
        params: { query: { limit: pageSize, offset, status, ...(query && { query }), ...(tags && { tags }) } },
      }),
    ).then((page) => ({ ...page, items: page.items.map(shownOf) })),
  );
  const filtered = Boolean(query || tags || status !== 'active');
  return (
    <Screen title="Sessions" actions={<StartSession />}>
      <Group gap="sm">
        <Search
          label="Search"
          placeholder="Name, pool, profile, or an id"
          value={query ?? ''}
          change={(value) =>
            void navigate({ search: (old) => ({ ...old, query: value || undefined, offset: undefined }) })
          }
        />
        <Search
          label="Tags"
          placeholder="team=a, env=b"
          value={search.tags ?? ''}
          change={(value) =>
            void navigate({ search: (old) => ({ ...old, tags: value || undefined, offset: undefined }) })
          }
        />
        <SegmentedControl
          aria-label="Which sessions"
          size="sm"
          value={status}
          onChange={(value) =>
            void navigate({
              search: (old) => ({
                ...old,
                status: value === 'active' ? undefined : value,
                offset: undefined,
              }),
            })
          }
          data={[
            { value: 'active', label: 'Running' },
            { value: 'deleted', label: 'Ended' },
            { value: 'all', label: 'All' },
          ]}
        />
        <SegmentedControl
          aria-label="How sessions are shown"
          size="sm"
          value={search.wall ? 'wall' : 'list'}
          onChange={(value) => void navigate({ search: (old) => ({ ...old, wall: value === 'wall' || undefined }) })}
          data={[
            { value: 'list', label: 'List' },
            { value: 'wall', label: 'Wall' },
          ]}
        />
      </Group>
      <Listing
        label="Sessions"
        page={sessions}
        columns={columns}
        {...(search.wall && { draw: asWall })}
        idOf={({ session_id }) => session_id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          filtered ? (
            <Empty title="No session fits">
              <Button variant="subtle" onClick={() => void navigate({ search: {} })}>
                Show all that run
              </Button>
            </Empty>
          ) : (
            <Empty title="No browser is running" command={create()}>
              A session is a browser of its own, with an address for Playwright and Puppeteer and a live view. Start one
              here or with the API.
            </Empty>
          )
        }
      />
    </Screen>
  );
}

/** The shown fields of a session. Addresses are left out: they have new tokens in each answer, which would redraw every row. */
const shownOf = (session: Browser) => {
  const { session_id, name, state, active_page, start_url, ended_detail, tags, clients, created_at, deleted_at } =
    session;
  return { session_id, name, state, active_page, start_url, ended_detail, tags, clients, created_at, deleted_at };
};
type Shown = ReturnType<typeof shownOf>;

const asWall = (sessions: readonly Shown[]) => <Wall sessions={sessions} />;

const columns: Column<Shown>[] = [
  { name: 'Session', cell: (session) => <SessionLink session={session} /> },
  { name: 'State', cell: ({ state }) => <State of={state} /> },
  {
    name: 'Page',
    wide: true,
    cell: ({ active_page, start_url, ended_detail }) => (
      <span className="clip quiet" title={active_page?.url}>
        <bdi>{active_page?.title || active_page?.url || ended_detail || start_url || '–'}</bdi>
      </span>
    ),
  },
  {
    name: 'Tags',
    wide: true,
    cell: ({ tags }) => (
      <div className="tags">
        {Object.entries(tags ?? {}).map(([key, value]) => (
          <span key={key} className="label tag">
            {key}={value}
          </span>
        ))}
      </div>
    ),
  },
  { name: 'Clients', wide: true, cell: ({ clients }) => clientCount(clients) },

  { name: 'Started', cell: ({ created_at }) => <Time at={created_at} /> },
];

/** The clients and viewers of the session. */
const clientCount = (clients: Browser['clients']) =>
  clients ? Object.values(clients).reduce((sum, count) => sum + count, 0) : '–';

/** `team=a, env=b` as a parameter of the API; undefined while it is incomplete. */
function readTags(text: string): Record<string, string> | undefined {
  const pairs = text
    .split(',')
    .map((part) => [part.indexOf('='), part] as const)
    .flatMap(([at, part]) => (at === -1 ? [] : [[part.slice(0, at).trim(), part.slice(at + 1).trim()] as const]))
    .filter(([name]) => name !== '');
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}
