import '@xterm/xterm/css/xterm.css';
import { Button, Group, Stack, Text } from '@mantine/core';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { useEffect, useRef, useState } from 'react';
import { colour } from '../../../../src/lib/look.ts';
import { api, ask, fetchRaw } from '../../api/client.ts';
import { eventsOf } from '../../api/stream.ts';
import type { ProcessStreamEvent } from '../../api/schema.gen.d.ts';
import { Refusal } from '../../parts/parts.tsx';
import type { Part } from './part.ts';

/** A shell in the session. It ends when this screen is left. */
export function Shell({ session }: Part) {
  const [round, setRound] = useState(0);
  return <Attached key={round} id={session.session_id} again={() => setRound(round + 1)} />;
}

function Attached({ id, again }: { id: string; again: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<Error | null>(null);
  const [ended, setEnded] = useState<number | undefined>();

  useEffect(() => {
    const over = new AbortController();
    const terminal = new Terminal({ fontSize: 13, cursorBlink: true, theme: { background: colour('card', 'dark') } });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(place.current!);
    fit.fit();
    terminal.focus();
    run({ id, terminal, fit, signal: over.signal })
      .then(setEnded)
      .catch((failure: Error) => {
        if (!over.signal.aborted) setError(failure);
      });
    return () => {
      over.abort();
      terminal.dispose();
    };
  }, [id]);

  return (
    <Stack gap="xs">
      <Refusal error={error} />
      {(ended !== undefined || error) && (
        <Group>
          <Text size="sm">{ended === undefined ? '' : `The shell ended with ${ended}.`}</Text>
          <Button size="xs" variant="light" onClick={again}>
            Start another
          </Button>
        </Group>
      )}
      <div ref={place} className="shell" />
      <Text size="xs" c="dimmed">
        A shell inside the session's sandbox, as the user of its browser. Leaving this screen ends it.
      </Text>
    </Stack>
  );
}

async function run({
  id,
  terminal,
  fit,
  signal,
}: {
  id: string;
  terminal: Terminal;
  fit: FitAddon;
  signal: AbortSignal;
}) {
  const path = { id };
  const { process_id } = await ask(
    api.POST('/browsers/{id}/process/spawn', {
      params: { path },
      body: {
        command: '/bin/bash',
        allocate_tty: true,
        rows: terminal.rows,
        cols: terminal.cols,
        env: { TERM: 'xterm-256color' },
      },
    }),
  );
  const at = { params: { path: { id, process_id } } };
  const place = `/browsers/${encodeURIComponent(id)}/process/${encodeURIComponent(process_id)}`;
  // keepalive: the request is also sent when the tab is closed.
  const kill = () =>
    void fetchRaw(`${place}/kill`, {
      method: 'POST',
      keepalive: true,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ signal: 'HUP' }),
    }).catch(() => {});
  if (signal.aborted) return kill();
  signal.addEventListener('abort', kill);
  addEventListener('pagehide', kill, { signal });

  // One request at a time, in the order of the keys; later keys are sent with the next request.
  let typed = '';
  let sending = false;
  async function send() {
    if (sending) return;
    sending = true;
    try {
      while (typed && !signal.aborted) {
        const data_b64 = base64(typed);
        typed = '';
        await ask(api.POST('/browsers/{id}/process/{process_id}/stdin', { ...at, body: { data_b64 } }));
      }
    } catch {
      typed = ''; // the shell has ended; the stream reports it
    } finally {
      sending = false;
    }
  }
  terminal.onData((data) => {
    typed += data;
    void send();
  });
  terminal.onResize(({ rows, cols }) => {
    void api.POST('/browsers/{id}/process/{process_id}/resize', { ...at, body: { rows, cols } }).catch(() => {});
  });
  const fitted = () => fit.fit();
  addEventListener('resize', fitted, { signal });

  const stream = `${place}/stdout/stream`;
  for await (const event of eventsOf<ProcessStreamEvent>(stream, signal)) {
    if (event.data_b64) terminal.write(Uint8Array.from(atob(event.data_b64), (letter) => letter.charCodeAt(0)));
    if (event.event === 'exit') {
      signal.removeEventListener('abort', kill);
      return event.exit_code;
    }
  }
  return undefined;
}

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
