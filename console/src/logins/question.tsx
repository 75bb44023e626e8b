import { Alert, Button, Group, Paper, PasswordInput, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { api, ask } from '../api/client.ts';
import { useAct } from '../api/live.ts';
import type { ManagedAuth, ManagedAuthField, SubmitFieldsRequest } from '../api/schema.gen.d.ts';
import { Copy, Refusal } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';
import { answering, questionOf } from './answering.ts';

/** The state of a running login, and its question to a person. */
export function Flow({ login }: { login: ManagedAuth }) {
  const step = login.flow_step;
  const cancel = useAct(() => ask(api.POST('/auth/connections/{id}/cancel', { params: { path: { id: login.id } } })));
  return (
    <Paper withBorder p="md" radius="md" component="section" aria-label="The login that runs">
      <Stack gap="sm">
        {step === 'AWAITING_INPUT' && <Question key={questionOf(login)} login={login} />}
        {step === 'AWAITING_EXTERNAL_ACTION' && (
          <>
            <Title order={2} size="h5">
              It waits for you elsewhere
            </Title>
            <Text>
              <bdi>
                {login.external_action_message ?? 'The site waits for something that is done on another device.'}
              </bdi>
            </Text>
          </>
        )}
        {step !== 'AWAITING_INPUT' && step !== 'AWAITING_EXTERNAL_ACTION' && (
          <Text component="output">
            {step === 'SUBMITTING' ? 'The answer is being sent to the site.' : 'The site is being read.'}
          </Text>
        )}
        <Group gap={4}>
          <Text size="sm" c="dimmed">
            Ends <Time at={login.input_expires_at ?? login.flow_expires_at} />
            {login.hosted_url && ' · Another person can answer on this page:'}
          </Text>
          {login.hosted_url && <Copy value={login.hosted_url} label="Copy the address of that page" />}
        </Group>
        <Group>
          <Button size="xs" variant="default" loading={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
            Cancel this login
          </Button>
        </Group>
        <Refusal error={cancel.error} />
      </Stack>
    </Paper>
  );
}

/** One question. It is mounted again for each question, so that no answer is shown under another question. Typed text stays while the question is the same. */
function Question({ login }: { login: ManagedAuth }) {
  const fields = login.fields ?? [];
  const choices = login.choices ?? [];
  const [values, setValues] = useState<Record<string, string>>({});
  const at = { params: { path: { id: login.id } } };
  const answer = useAct((body: SubmitFieldsRequest) =>
    answering(
      login,
      (interaction_id) =>
        ask(
          api.POST('/auth/connections/{id}/submit', {
            ...at,
            body: { ...(interaction_id && { interaction_id }), ...body },
          }),
        ),
      () => ask(api.GET('/auth/connections/{id}', at)),
    ),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    answer.mutate({ field_values: values });
  };
  return (
    <>
      <Title order={2} size="h5">
        {fields.length > 0 ? 'The site asks' : 'The site offers a choice'}
      </Title>
      {login.website_error && (
        <Alert color="yellow" title={<bdi>{login.website_error}</bdi>} role="alert" className="wrap" />
      )}
      {login.external_action_message && (
        <Text size="sm" c="dimmed">
          {login.external_action_message}
        </Text>
      )}
      {fields.length > 0 && (
        <form onSubmit={submit} autoComplete="off">
          <Stack gap="sm" maw={420}>
            {fields.map((field, index) => (
              <Field
                key={field.id}
                field={field}
                first={index === 0}
                value={values[field.id] ?? ''}
                change={(value) => setValues((old) => ({ ...old, [field.id]: value }))}
              />
            ))}
            <Group>
              <Button type="submit" loading={answer.isPending}>
                Answer
              </Button>
            </Group>
          </Stack>
        </form>
      )}
      {choices.length > 0 && (
        <Group gap="xs">
          {choices.map(({ id, label, description }) => (
            <Button
              key={id}
              variant="light"
              loading={answer.isPending}
              title={description ?? undefined}
              onClick={() => answer.mutate({ selected_choice_id: id })}
            >
              <bdi>{label}</bdi>
            </Button>
          ))}
        </Group>
      )}
      <Refusal error={answer.error} />
    </>
  );
}

function Field(props: { field: ManagedAuthField; first: boolean; value: string; change: (value: string) => void }) {
  const { field, value, change } = props;
  const shared = {
    label: <bdi>{field.label ?? field.ref}</bdi>,
    required: field.required !== false,
    ...(field.hint && { description: field.hint }),
    ...(props.first && { autoFocus: true }),
  };
  if (field.options?.length)
    return (
      <Select
        {...shared}
        data={field.options}
        value={value || null}
        onChange={(next) => change(next ?? '')}
        allowDeselect={false}
      />
    );
  const typed = {
    ...shared,
    value,
    spellCheck: false,
    onChange: (event: { currentTarget: { value: string } }) => change(event.currentTarget.value),
  };
  if (field.type === 'password' || field.type === 'totp_secret') return <PasswordInput {...typed} autoComplete="off" />;
  return (
    <TextInput
      {...typed}
      autoComplete={field.type === 'code' || field.type === 'totp_code' ? 'one-time-code' : 'off'}
      inputMode={field.type === 'code' || field.type === 'totp_code' ? 'numeric' : 'text'}
    />
  );
}
