import { NumberInput, Select, Switch, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, ask } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import { Dialog, Form, useOn, useText } from '../parts/form.tsx';

/** The form that starts a session. `profile` is set when a profile is opened from its own screen. */
export function StartSession({ profile, label = 'New session' }: { profile?: string; label?: string }) {
  return (
    <Dialog label={label} {...(profile && { variant: 'light' })}>
      {(close) => <Fields profile={profile} close={close} />}
    </Dialog>
  );
}

function Fields({ profile, close }: { profile?: string | undefined; close: () => void }) {
  const navigate = useNavigate();
  const name = useText();
  const startUrl = useText();
  const headless = useOn(false);
  const [minutes, setMinutes] = useState<number | string>(10);
  const [chosen, setChosen] = useState<string | null>(profile ?? null);
  const save = useOn(true);
  const profiles = useLive(['profiles', 'choice'], () =>
    ask(api.GET('/profiles', { params: { query: { limit: 100 } } })),
  );
  const start = useAct(
    () =>
      ask(
        api.POST('/browsers', {
          body: {
            headless: headless.on,
            timeout_seconds: Math.round(Number(minutes) * 60),
            ...(name.text && { name: name.text }),
            ...(startUrl.text && { start_url: startUrl.text }),
            ...(chosen && { profile: { id: chosen, save_changes: save.on } }),
          },
        }),
      ),
    ({ session_id }) => {
      close();
      void navigate({ to: '/sessions/$id', params: { id: session_id } });
    },
  );
  return (
    <Form label="Start" act={start} send={() => start.mutate(undefined)}>
      <TextInput label="Name" description="Optional" {...name.input} data-autofocus />
      <TextInput label="First page" placeholder="https://example.com" {...startUrl.input} />
      <Select
        label="Profile"
        placeholder="None"
        clearable
        searchable
        value={chosen}
        onChange={setChosen}
        data={(profiles.data ?? []).map((one) => ({ value: one.id, label: one.name ?? one.id }))}
      />
      {chosen && <Switch label="Save what changes into the profile when the session ends" {...save.input} />}
      <NumberInput
        label="Ends when idle for"
        suffix=" minutes"
        min={1}
        max={4320}
        value={minutes}
        onChange={setMinutes}
      />
      <Switch
        label="Headless"
        description="Without a display: it starts faster and takes less memory"
        {...headless.input}
      />
    </Form>
  );
}
