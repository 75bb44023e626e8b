import { Alert, Button, Group, MultiSelect, PasswordInput, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useState } from 'react';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { CredentialProvider } from '../api/schema.gen.d.ts';
import { Dialog, Form, useText } from '../parts/form.tsx';
import { Listing, type Column } from '../parts/listing.tsx';
import { Destroy, Refusal, State } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

/** External stores of credentials for logins. They are resources of the organisation that are shared with projects. */
export function Providers() {
  const providers = useLive(['providers'], () =>
    askPage(api.GET('/org/credential_providers', { params: { query: { limit: 100 } } })),
  );
  return (
    <Stack gap="xs" component="section">
      <Group justify="space-between">
        <Title order={2} size="h5">
          Providers
        </Title>
        <NewProvider />
      </Group>
      <Listing
        label="Providers"
        page={providers}
        columns={columns}
        idOf={({ id }) => id}
        empty={
          <Text size="sm" c="dimmed">
            None. Logins can take credentials from 1Password, HashiCorp Vault, OpenBao or a store of your own.
          </Text>
        }
      />
    </Stack>
  );
}

const kinds = { passwordmanager: '1Password', onepassword: '1Password', vault: 'Vault or OpenBao', http: 'Own store' };

const columns: Column<CredentialProvider>[] = [
  { name: 'Provider', cell: ({ name }) => <bdi className="clip">{name}</bdi> },
  { name: 'Status', cell: ({ enabled }) => <State of={enabled ? 'enabled' : 'disabled'} /> },
  { name: 'Kind', wide: true, cell: ({ provider_type }) => kinds[provider_type] },
  { name: 'Address', wide: true, cell: ({ server_url }) => <span className="wrap">{server_url ?? '–'}</span> },
  { name: 'Projects', wide: true, cell: ({ projects = [] }) => <Shared ids={projects} /> },
  { name: 'Changed', wide: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
  { name: '', cell: (provider) => <Acts provider={provider} /> },
];

const useProjects = () =>
  useLive(['projects', 'names'], () => askPage(api.GET('/org/projects', { params: { query: { limit: 100 } } })));

/** The projects that may use a provider. */
function Shared({ ids }: { ids: string[] }) {
  const projects = useProjects();
  if (ids.includes('*')) return 'all';
  const names = ids.map((id) => projects.data?.items.find((project) => project.id === id)?.name ?? id);
  return <bdi className="wrap">{names.join(', ') || 'none'}</bdi>;
}

function Share({ provider: { id, projects: now = [] }, close }: { provider: CredentialProvider; close: () => void }) {
  const projects = useProjects();
  const [ids, setIds] = useState(now);
  const save = useAct(
    () => ask(api.PATCH('/org/credential_providers/{id}', { params: { path: { id } }, body: { projects: ids } })),
    close,
  );
  const named = projects.data?.items.map((project) => ({ value: project.id, label: project.name })) ?? [];
  const beyond = now.filter((one) => one !== '*' && !named.some(({ value }) => value === one));
  return (
    <Form label="Save" act={save} send={() => save.mutate(undefined)}>
      <MultiSelect
        label="Projects"
        description="Their logins may use the items of this provider, at the sites that each item names."
        data={[{ value: '*', label: 'All projects' }, ...named, ...beyond]}
        value={ids}
        onChange={setIds}
        searchable
        data-autofocus
      />
    </Form>
  );
}

function Acts({ provider }: { provider: CredentialProvider }) {
  const { id, name, enabled } = provider;
  const at = { params: { path: { id } } };
  const check = useAct(() => ask(api.POST('/org/credential_providers/{id}/test', at)));
  const turn = useAct(() => ask(api.PATCH('/org/credential_providers/{id}', { ...at, body: { enabled: !enabled } })));
  return (
    <Stack gap={4}>
      <Group gap={4} justify="flex-end">
        <Button size="xs" variant="light" loading={check.isPending} onClick={() => check.mutate(undefined)}>
          Check
        </Button>
        <Button size="xs" variant="subtle" loading={turn.isPending} onClick={() => turn.mutate(undefined)}>
          {enabled ? 'Disable' : 'Enable'}
        </Button>
        <Dialog label="Share" title={`Share ${name}`} variant="subtle">
          {(close) => <Share provider={provider} close={close} />}
        </Dialog>
        <Destroy
          label="Remove"
          size="xs"
          subtle
          title={`Remove ${name}?`}
          ends="Its token is gone. Logins with a credential of this provider have to ask a person."
          act={() => ask(api.DELETE('/org/credential_providers/{id}', at))}
        />
      </Group>
      <Refusal error={check.error ?? turn.error} />
      {check.data && (
        <Alert
          color={check.data.success ? 'teal' : 'red'}
          title={check.data.success ? 'It answers' : 'The check failed'}
          className="wrap"
        >
          <bdi>
            {check.data.success
              ? `The token sees ${check.data.vaults.map((vault) => vault.name).join(', ') || 'nothing'}.`
              : check.data.error}
          </bdi>
        </Alert>
      )}
    </Stack>
  );
}

const NewProvider = () => (
  <Dialog label="New provider" variant="light">
    {(close) => <Fields close={close} />}
  </Dialog>
);

function Fields({ close }: { close: () => void }) {
  const [kind, setKind] = useState<'passwordmanager' | 'vault' | 'http'>('passwordmanager');
  const name = useText();
  const address = useText();
  const token = useText();
  const namespace = useText();
  const make = useAct(
    () =>
      ask(
        api.POST('/org/credential_providers', {
          body: {
            provider_type: kind,
            name: name.text,
            token: token.text,
            cache_ttl_seconds: 300,
            priority: 0,
            enabled: true,
            ...(address.text && { server_url: address.text }),
            ...(kind === 'vault' && namespace.text && { namespace: namespace.text }),
          },
        }),
      ),
    close,
  );
  return (
    <Form label="Add the provider" act={make} send={() => make.mutate(undefined)}>
      <Select
        label="Kind"
        data={(['passwordmanager', 'vault', 'http'] as const).map((value) => ({ value, label: kinds[value] }))}
        value={kind}
        onChange={(value) => value && setKind(value)}
        allowDeselect={false}
        data-autofocus
      />
      <TextInput label="Name" {...name.input} required maxLength={255} />
      <TextInput
        label="Address"
        description={kind === 'passwordmanager' ? 'Of a Connect server. Empty: a service account.' : undefined}
        placeholder="https://vault.example:8200"
        required={kind !== 'passwordmanager'}
        {...address.input}
      />
      {kind === 'vault' && <TextInput label="Namespace" description="Optional" {...namespace.input} />}
      <PasswordInput
        label="Token"
        description="It is sealed, and no answer ever has it."
        autoComplete="off"
        required
        {...token.input}
      />
    </Form>
  );
}
