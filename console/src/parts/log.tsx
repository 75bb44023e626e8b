import { Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { eventsOf } from '../api/stream.ts';
import { Refusal } from './parts.tsx';

/** The number of lines that a browser scrolls without delay. */
const KEPT = 2000;

/** The lines of a stream of events. `path` is followed from the start to the end of the stream; another path needs another `key`. */
export function Log({ path, waiting }: { path: string; waiting: string }) {
  const [lines, setLines] = useState<string[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const box = useRef<HTMLPreElement>(null);

  useEffect(() => {
    const over = new AbortController();
    let fresh: string[] = [];
    // Drawn at most a few times a second.
    const show = () => {
      if (fresh.length === 0) return;
      const more = fresh;
      fresh = [];
      setLines((old) => [...old, ...more].slice(-KEPT));
    };
    const timer = setInterval(show, 200);
    const events = eventsOf<{ message?: string }>(path, over.signal);
    const read = async () => {
      for await (const { message } of events) if (message !== undefined) fresh.push(message);
    };
    read().catch((failure: Error) => {
      if (!over.signal.aborted) setError(failure);
    });
    return () => {
      clearInterval(timer);
      over.abort();
    };
  }, [path]);

  useEffect(() => {
    const { current } = box;
    if (current && current.scrollHeight - current.scrollTop - current.clientHeight < 200)
      current.scrollTop = current.scrollHeight;
  });

  return (
    <>
      <Refusal error={error} />
      {lines.length === 0 && !error && (
        <Text size="sm" c="dimmed">
          {waiting}
        </Text>
      )}
      {lines.length > 0 && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it can be scrolled by keyboard
        <pre ref={box} className="log" aria-label="Log" tabIndex={0}>
          {lines.join('\n')}
        </pre>
      )}
    </>
  );
}
