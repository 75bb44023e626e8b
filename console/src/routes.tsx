import { Anchor, Text } from '@mantine/core';
import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from '@tanstack/react-router';
import { auditSearch } from './org/audit-search.ts';
import { Overview } from './overview/screen.tsx';
import { Empty, Refusal, Waiting } from './parts/parts.tsx';
import { Sessions } from './sessions/screen.tsx';
import { sessionTabs, type SessionTab } from './sessions/tabs.ts';
import { Shell, type Place } from './shell/shell.tsx';

/** One entry for each room, in the order of the menu. */
const places: Place[] = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/sessions', label: 'Sessions', icon: 'sessions' },
  { to: '/pools', label: 'Pools', icon: 'pools' },
  { to: '/profiles', label: 'Profiles', icon: 'profiles' },
  { to: '/extensions', label: 'Extensions', icon: 'extensions' },
  { to: '/proxies', label: 'Proxies', icon: 'proxies' },
  { to: '/credentials', label: 'Credentials', icon: 'credentials' },
  { to: '/logins', label: 'Logins', icon: 'logins' },
  { to: '/deployments', label: 'Apps', icon: 'deployments' },
  { to: '/projects', label: 'Projects', icon: 'projects' },
  { to: '/keys', label: 'API keys', icon: 'org' },
  { to: '/audit', label: 'Audit log', icon: 'audit' },
  { to: '/about', label: 'About', icon: 'about' },
];

const root = createRootRoute({
  component: () => <Shell places={places} />,
  notFoundComponent: () => (
    <Empty title="This screen does not exist">
      <Anchor component={Link} to="/">
        To the overview
      </Anchor>
    </Empty>
  ),
  errorComponent: ({ error }) => (
    <div role="alert">
      <Refusal error={error as Error} />
      <Text size="sm" mt="sm">
        <Anchor href="/console">Load the console again</Anchor>
      </Text>
    </div>
  ),
});

interface ListSearch {
  query?: string | undefined;
  offset?: number | undefined;
}

/** The filters of a list in the address. Invalid ones are left out. */
const listSearch = (given: Record<string, unknown>): ListSearch => ({
  ...(typeof given['query'] === 'string' && given['query'] !== '' ? { query: given['query'] } : {}),
  ...(Number.isInteger(given['offset']) && (given['offset'] as number) > 0
    ? { offset: given['offset'] as number }
    : {}),
});

interface SessionsSearch extends ListSearch {
  status?: 'deleted' | 'all' | undefined;
  tags?: string | undefined;
  wall?: true | undefined;
}

const overview = createRoute({ getParentRoute: () => root, path: '/', component: Overview });
const sessions = createRoute({
  getParentRoute: () => root,
  path: '/sessions',
  component: Sessions,
  validateSearch: (given: Record<string, unknown>): SessionsSearch => {
    const { status, tags, wall } = given;
    return {
      ...listSearch(given),
      ...(status === 'deleted' || status === 'all' ? { status } : {}),
      ...(typeof tags === 'string' && tags !== '' ? { tags } : {}),
      ...(wall === true ? { wall } : {}),
    };
  },
});
const session = createRoute({
  getParentRoute: () => root,
  path: '/sessions/$id',
  component: lazyRouteComponent(() => import('./sessions/session/screen.tsx'), 'Session'),
  validateSearch: (given: Record<string, unknown>): { tab?: SessionTab } =>
    sessionTabs.includes(given['tab'] as SessionTab) ? { tab: given['tab'] as SessionTab } : {},
});
const pools = createRoute({
  getParentRoute: () => root,
  path: '/pools',
  component: lazyRouteComponent(() => import('./pools/screen.tsx'), 'Pools'),
  validateSearch: listSearch,
});
const profiles = createRoute({
  getParentRoute: () => root,
  path: '/profiles',
  component: lazyRouteComponent(() => import('./profiles/screen.tsx'), 'Profiles'),
  validateSearch: listSearch,
});
const extensions = createRoute({
  getParentRoute: () => root,
  path: '/extensions',
  component: lazyRouteComponent(() => import('./extensions/screen.tsx'), 'Extensions'),
  validateSearch: listSearch,
});
const proxies = createRoute({
  getParentRoute: () => root,
  path: '/proxies',
  component: lazyRouteComponent(() => import('./proxies/screen.tsx'), 'Proxies'),
  validateSearch: listSearch,
});
const credentials = createRoute({
  getParentRoute: () => root,
  path: '/credentials',
  component: lazyRouteComponent(() => import('./credentials/screen.tsx'), 'Credentials'),
  validateSearch: listSearch,
});
const logins = createRoute({
  getParentRoute: () => root,
  path: '/logins',
  component: lazyRouteComponent(() => import('./logins/screen.tsx'), 'Logins'),
  validateSearch: listSearch,
});
const login = createRoute({
  getParentRoute: () => root,
  path: '/logins/$id',
  component: lazyRouteComponent(() => import('./logins/login.tsx'), 'Login'),
});
const deployments = createRoute({
  getParentRoute: () => root,
  path: '/deployments',
  component: lazyRouteComponent(() => import('./deployments/screen.tsx'), 'Deployments'),
  validateSearch: listSearch,
});
const invocation = createRoute({
  getParentRoute: () => root,
  path: '/deployments/invocations/$id',
  component: lazyRouteComponent(() => import('./deployments/invocation.tsx'), 'Invocation'),
});
const projects = createRoute({
  getParentRoute: () => root,
  path: '/projects',
  component: lazyRouteComponent(() => import('./org/projects.tsx'), 'Projects'),
  validateSearch: listSearch,
});
const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  component: lazyRouteComponent(() => import('./org/keys.tsx'), 'Keys'),
  validateSearch: listSearch,
});
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  component: lazyRouteComponent(() => import('./org/audit.tsx'), 'Audit'),
  validateSearch: auditSearch,
});
const about = createRoute({
  getParentRoute: () => root,
  path: '/about',
  component: lazyRouteComponent(() => import('./about/screen.tsx'), 'About'),
});

const rooms = [pools, profiles, extensions, proxies, credentials, logins, login, deployments, invocation] as const;
const organisation = [projects, keys, audit, about] as const;

export const router = createRouter({
  routeTree: root.addChildren([overview, sessions, session, ...rooms, ...organisation]),
  basepath: '/console',
  defaultPreload: 'intent',
  defaultPendingComponent: Waiting,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
