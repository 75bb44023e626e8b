import type { Readable } from 'node:stream';

const LINES = 200;
const LONGEST = 2000;
/** There is no D-Bus in the sandbox, and no flag that keeps Chromium from saying so a dozen times at every start. */
const NOISE = /:ERROR:dbus\/|dconf-CRITICAL/;

/** Keeps the last lines a process wrote: what an error message quotes. */
export function logTail(stream: Readable | null): () => string[] {
  const lines: string[] = [];
  let partial = '';

  stream?.setEncoding('utf8');
  stream?.on('data', (text: string) => {
    const parts = (partial + text).split('\n');
    // A process that never ends its line must not grow the service.
    partial = parts.pop()!.slice(0, LONGEST);
    for (const line of parts) if (line.trim() !== '' && !NOISE.test(line)) lines.push(line.slice(0, LONGEST));
    if (lines.length > LINES) lines.splice(0, lines.length - LINES);
  });
  stream?.on('error', () => {}); // the process is gone; `exited` says so

  return () => (partial.trim() === '' ? [...lines] : [...lines, partial].slice(-LINES));
}
