import { Button, Group, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { api, ask } from '../api/client.ts';
import { useAct } from '../api/live.ts';
import type { ManagedAuth } from '../api/schema.gen.d.ts';
import { Dialog, Form, useText } from '../parts/form.tsx';
import { Destroy, Refusal } from '../parts/parts.tsx';

/** Actions on a login, in the list and on its own page. */
export function LoginActs({ login, left }: { login: ManagedAuth; left?: () => void }) {
  const at = { params: { path: { id: login.id } } };
  const navigate = useNavigate();
  const start = useAct(
    () => ask(api.POST('/auth/connections/{id}/login', { ...at, body: {} })),
    () => void navigate({ to: '/logins/$id', params: { id: login.id } }),
  );
  return (
    <>
      <Group gap={4} justify="flex-end">
        {login.flow_status !== 'IN_PROGRESS' && (
          <Button size="xs" variant="light" loading={start.isPending} onClick={() => start.mutate(undefined)}>
            Log in
          </Button>
        )}
        <Destroy
          label="Delete"
          size="xs"
          subtle
          title={`Delete the login at ${login.domain}?`}
          ends="It is not kept signed in any more, and a login that runs is ended. The profile and the credential stay."
          act={async () => {
            await ask(api.DELETE('/auth/connections/{id}', at));
            left?.();
          }}
        />
      </Group>
      <Refusal error={start.error} />
    </>
  );
}

export const NewLogin = () => <Dialog label="New login">{(close) => <Fields close={close} />}</Dialog>;

function Fields({ close }: { close: () => void }) {
  const navigate = useNavigate();
  const domain = useText();
  const profile = useText();
  const address = useText();
  const credential = useText();
  const make = useAct(
    async () => {
      const made = await ask(
        api.POST('/auth/connections', {
          body: {
            domain: domain.text,
            profile_name: profile.text,
            ...(address.text && { login_url: address.text }),
            ...(credential.text && { credential: { name: credential.text } }),
          },
        }),
      );
      await ask(api.POST('/auth/connections/{id}/login', { params: { path: { id: made.id } }, body: {} }));
      return made;
    },
    ({ id }) => {
      close();
      void navigate({ to: '/logins/$id', params: { id } });
    },
  );
  return (
    <Form label="Start the login" act={make} send={() => make.mutate(undefined)}>
      <TextInput label="Site" placeholder="shop.example" {...domain.input} required data-autofocus />
      <TextInput
        label="Profile"
        description="It is kept signed in. A new name makes a new profile."
        {...profile.input}
        required
      />
      <TextInput
        label="Address of the login page"
        description="Optional: when empty, the service looks for it"
        placeholder="https://shop.example/login"
        {...address.input}
      />
      <TextInput
        label="Credential"
        description="Optional: its name. Missing values are asked for here."
        {...credential.input}
      />
    </Form>
  );
}
