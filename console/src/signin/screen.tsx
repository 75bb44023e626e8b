import { Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useEffect, useState, type FormEvent } from 'react';
import { api, ApiError, ask } from '../api/client.ts';
import { become, lastWords } from '../api/identity.ts';
import { Refusal, Waiting } from '../parts/parts.tsx';

/** The code of a sign-in link. It is removed from the address immediately, so that no bookmark or screenshot contains it. */
let code = /^#code=([A-Za-z0-9]+)$/.exec(location.hash)?.[1];
if (code) history.replaceState(null, '', location.pathname + location.search);

/** Started once, although React may mount the form several times. */
let exchange: Promise<void> | undefined;

export function SignIn() {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [linking, setLinking] = useState(code !== undefined);
  const [error, setError] = useState<Error | null>(() => {
    const words = lastWords();
    return words ? new ApiError(401, 'unauthorized', words, '') : null;
  });

  useEffect(() => {
    if (!code) return;
    exchange ??= ask(api.POST('/console/sign_in', { body: { code } }))
      .finally(() => (code = undefined)) // it works once: after a sign-out the form is shown
      .then(({ key, id }) => become({ key, keyId: id }));
    exchange.catch((failure: Error) => {
      setError(failure);
      setLinking(false);
    });
  }, []);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const headers = { Authorization: `Bearer ${key.trim()}` };
      await ask(api.GET('/org/projects', { params: { query: { limit: 1 } }, headers }));
      become({ key: key.trim() });
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  }

  if (linking) return <Waiting />;
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={440} radius="md">
        <form onSubmit={(event) => void submit(event)}>
          <Stack>
            <div>
              <Title order={1} size="h3">
                Corral
              </Title>
              <Text c="dimmed" size="sm">
                Sign in to see the browsers of this service.
              </Text>
            </div>
            <PasswordInput
              label="API key"
              placeholder="sk_…"
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
              autoFocus
              required
            />
            <Refusal error={error} />
            <Button type="submit" loading={busy} disabled={key.trim() === ''}>
              Sign in
            </Button>
            <Text size="sm" c="dimmed">
              Without a key at hand, run <Code>npx corral console</Code> on the machine of the service. It prints a link
              that signs in once. The key is stored in this tab only, and removed when you close it.{' '}
              <Anchor href="/docs" underline="always">
                API reference
              </Anchor>
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
