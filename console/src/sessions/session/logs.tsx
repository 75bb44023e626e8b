import { Select, Stack } from '@mantine/core';
import { useState } from 'react';
import { Log } from '../../parts/log.tsx';
import type { Part } from './part.ts';

export function Logs({ session }: Part) {
  const running = session.deleted_at === undefined;
  const [source, setSource] = useState('chromium');
  const sources = [
    { value: 'chromium', label: 'Chromium' },
    ...(session.headless ? [] : [{ value: 'xvnc', label: 'Display' }]),
    { value: 'recorder', label: 'Recorder' },
    { value: 'console', label: "Pages' console (with telemetry)" },
    ...(running ? [] : [{ value: 'processes', label: 'Processes' }]),
  ];
  const query = new URLSearchParams({ source: 'supervisor', supervisor_process: source, follow: String(running) });
  const path = `/browsers/${encodeURIComponent(session.session_id)}/logs/stream?${query}`;
  return (
    <Stack gap="sm">
      <Select
        label="Of"
        w={280}
        data={sources}
        value={source}
        onChange={(value) => value && setSource(value)}
        allowDeselect={false}
      />
      <Log
        key={path}
        path={path}
        waiting={running ? 'No line yet. New ones appear here as they are written.' : 'No line was kept.'}
      />
    </Stack>
  );
}
