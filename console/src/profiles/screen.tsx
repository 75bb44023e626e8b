import { Alert, Button, Group, Stack, Table, TextInput } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { Profile } from '../api/schema.gen.d.ts';
import { Dialog, Form, useText } from '../parts/form.tsx';
import { Listing, pageSize, type Column } from '../parts/listing.tsx';
import { Destroy, Empty, Refusal, Screen, Waiting } from '../parts/parts.tsx';
import { bytes, Time } from '../parts/time.tsx';
import { SessionLink } from '../sessions/link.tsx';
import { StartSession } from '../sessions/start.tsx';

const route = getRouteApi('/profiles');
const named = (profile: Profile) => profile.name ?? profile.id;

export function Profiles() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const profiles = useLive(['profiles', query, offset], () =>
    askPage(api.GET('/profiles', { params: { query: { limit: pageSize, offset, ...(query && { query }) } } })),
  );
  return (
    <Screen title="Profiles" actions={<NewProfile />}>
      {profiles.data?.items
        .filter(({ last_save_error }) => last_save_error)
        .map((profile) => (
          <Alert
            key={profile.id}
            color="yellow"
            title={`${named(profile)} was not saved the last time`}
            className="wrap"
          >
            {profile.last_save_error?.message} <Time at={profile.last_save_error?.at} />
          </Alert>
        ))}
      <Listing
        label="Profiles"
        page={profiles}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No profile" command="npx corral profiles create --name shop">
            A profile is the saved state of a browser: cookies, storage, logins. A session that saves its changes
            creates a new version when it ends.
          </Empty>
        }
      />
    </Screen>
  );
}

const columns: Column<Profile>[] = [
  { name: 'Profile', cell: (profile) => <bdi className="clip">{named(profile)}</bdi> },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
  { name: 'Last used', wide: true, cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  {
    name: '',
    cell: (profile) => (
      <Group gap={4} justify="flex-end">
        <StartSession profile={profile.id} label="Open" />
        <Versions profile={profile} />
        <Destroy
          label="Delete"
          size="xs"
          subtle
          title={`Delete ${named(profile)}?`}
          ends="All of its versions are gone. Sessions that run with it keep running, and save nothing."
          act={() => ask(api.DELETE('/profiles/{id_or_name}', { params: { path: { id_or_name: profile.id } } }))}
        />
      </Group>
    ),
  },
];

const Versions = ({ profile }: { profile: Profile }) => (
  <Dialog label="Versions" title={`Versions of ${named(profile)}`} variant="subtle" size="lg">
    {() => <VersionList id={profile.id} />}
  </Dialog>
);

function VersionList({ id }: { id: string }) {
  const at = { id_or_name: id };
  const versions = useLive(['profile-versions', id], () =>
    ask(api.GET('/profiles/{id_or_name}/versions', { params: { path: at } })),
  );
  const restore = useAct((version_id: string) =>
    ask(api.POST('/profiles/{id_or_name}/versions/{version_id}/restore', { params: { path: { ...at, version_id } } })),
  );
  if (versions.isPending) return <Waiting />;
  return (
    <Stack gap="sm">
      <Refusal error={versions.error ?? restore.error} />
      {versions.data?.length === 0 && <Empty title="Nothing was saved yet" />}
      {(versions.data?.length ?? 0) > 0 && (
        <Table aria-label="Versions" verticalSpacing="xs">
          <Table.Tbody>
            {versions.data?.map((version) => (
              <Table.Tr key={version.id}>
                <Table.Td>
                  <Time at={version.created_at} />
                </Table.Td>
                <Table.Td>{bytes(version.size_bytes)}</Table.Td>
                <Table.Td className="wide-only">
                  <SessionLink session={{ session_id: version.session_id }} />
                </Table.Td>
                <Table.Td ta="right">
                  {version.current ? (
                    'current'
                  ) : (
                    <Button size="compact-sm" variant="subtle" onClick={() => restore.mutate(version.id)}>
                      Restore
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}

const NewProfile = () => <Dialog label="New profile">{(close) => <Fields close={close} />}</Dialog>;

function Fields({ close }: { close: () => void }) {
  const name = useText();
  const make = useAct(() => ask(api.POST('/profiles', { body: name.text ? { name: name.text } : {} })), close);
  return (
    <Form label="Make the profile" act={make} send={() => make.mutate(undefined)}>
      <TextInput label="Name" {...name.input} data-autofocus required />
    </Form>
  );
}
