import {
  ActionIcon,
  AppShell,
  Burger,
  Group,
  NavLink,
  Select,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useEffect } from 'react';
import { api, ask } from '../api/client.ts';
import { useEvents } from '../api/events.ts';
import { become, identity, useIdentity } from '../api/identity.ts';
import { queries, useLive } from '../api/live.ts';
import { Icon, type IconName } from '../parts/icons.tsx';
import { SignIn } from '../signin/screen.tsx';

export interface Place {
  to: string;
  label: string;
  icon: IconName;
}

export function Shell({ places }: { places: readonly Place[] }) {
  const signedIn = useIdentity();
  useEffect(() => {
    if (!signedIn) queries.clear(); // data of one key is not shown to the next
  }, [signedIn]);
  return signedIn ? <Frame places={places} /> : <SignIn />;
}

function Frame({ places }: { places: readonly Place[] }) {
  useEvents(queries);
  const [opened, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(close, [path, close]);
  const isHere = (to: string) => (to === '/' ? path === '/' || path === '' : path === to || path.startsWith(`${to}/`));
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
      transitionDuration={0}
    >
      <a href="#content" className="skip">
        Skip to the content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close the menu' : 'Open the menu'}
              aria-expanded={opened}
            />
            <Text component={Link} to="/" fw={700} className="brand">
              Corral
            </Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <ProjectSwitch />
            <ColourSwitch />
            <Tooltip label="API reference">
              <ActionIcon component="a" href="/docs" variant="subtle" color="gray" size="lg" aria-label="API reference">
                <Icon name="docs" />
              </ActionIcon>
            </Tooltip>
            <Tooltip label="Sign out">
              <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Sign out" onClick={() => void signOut()}>
                <Icon name="leave" />
              </ActionIcon>
            </Tooltip>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Rooms">
        {places.map(({ to, label, icon }) => (
          <NavLink
            key={to}
            component={Link}
            to={to}
            label={label}
            leftSection={<Icon name={icon} />}
            active={isHere(to)}
            aria-current={isHere(to) ? 'page' : undefined}
            className="room"
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
}

/** Signing out revokes a key that came from a sign-in link. A key that was typed in is kept. */
async function signOut() {
  const keyId = identity()?.keyId;
  if (keyId)
    await api.DELETE('/org/api_keys/{id}', { params: { path: { id: keyId } } }).catch(() => {
      // It expires within a day.
    });
  become(null);
}

function ProjectSwitch() {
  const signedIn = useIdentity();
  const projects = useLive(['projects'], () => ask(api.GET('/org/projects', { params: { query: { limit: 100 } } })), {
    every: 30_000,
  });
  const active = (projects.data ?? []).filter(({ status }) => status === 'active');
  if (active.length < 2) return null;
  const chosen = signedIn?.project ?? active.find(({ name }) => name === 'Default')?.id ?? active[0]?.id ?? null;
  return (
    <Select
      aria-label="Project"
      size="xs"
      w={{ base: 120, sm: 180 }}
      data={active.map(({ id, name }) => ({ value: id, label: name }))}
      value={chosen}
      allowDeselect={false}
      searchable
      onChange={(project) => signedIn && project && become({ ...signedIn, project })}
    />
  );
}

function ColourSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const dark = useComputedColorScheme('light') === 'dark';
  const label = dark ? 'Light colours' : 'Dark colours';
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(dark ? 'light' : 'dark')}
      >
        <Icon name={dark ? 'sun' : 'moon'} />
      </ActionIcon>
    </Tooltip>
  );
}
