import { Button, Group, Stack, Tabs, Text, Textarea, Title } from '@mantine/core';
import { useState } from 'react';
import { api, ask } from '../../api/client.ts';
import { useAct } from '../../api/live.ts';
import { Refusal, Snippet } from '../../parts/parts.tsx';
import { snippets } from '../commands.ts';
import type { Part } from './part.ts';

/** Code that drives this session: to run here, and to copy. */
export function CodePart({ session }: Part) {
  const id = session.session_id;
  const [code, setCode] = useState('return await page.title();');
  const run = useAct((text: string) =>
    ask(api.POST('/browsers/{id}/playwright/execute', { params: { path: { id } }, body: { code: text } })),
  );
  const examples = Object.entries(snippets(session));
  return (
    <Stack gap="lg">
      <Stack gap="xs">
        <Textarea
          label="Playwright code"
          description="The code can use page, context and browser. Its return value is the result. Ctrl+Enter runs it."
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run.mutate(code);
          }}
          autosize
          minRows={4}
          maxRows={20}
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
        <Group>
          <Button size="sm" loading={run.isPending} disabled={code.trim() === ''} onClick={() => run.mutate(code)}>
            Run
          </Button>
        </Group>
        <Refusal error={run.error} />
        {run.data && (
          <>
            <Text size="sm" c={run.data.success ? undefined : 'red'}>
              {run.data.success ? 'It returned' : 'It failed'}
            </Text>
            <Snippet
              label="the result"
              text={run.data.success ? (JSON.stringify(run.data.result, null, 2) ?? 'nothing') : (run.data.error ?? '')}
            />
            {run.data.stdout && <Snippet label="the output" text={run.data.stdout} />}
          </>
        )}
      </Stack>
      <Stack gap="xs">
        <Title order={2} size="h5">
          From your own program
        </Title>
        <Tabs defaultValue={examples[0]?.[0] ?? ''}>
          <Tabs.List>
            {examples.map(([name]) => (
              <Tabs.Tab key={name} value={name}>
                {name}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {examples.map(([name, text]) => (
            <Tabs.Panel key={name} value={name} pt="xs">
              <Snippet text={text} label={`the code for ${name}`} />
            </Tabs.Panel>
          ))}
        </Tabs>
        <Text size="xs" c="dimmed">
          The addresses contain a token for this session. They work until it ends.
        </Text>
      </Stack>
    </Stack>
  );
}
