import { Tooltip } from '@mantine/core';
import { useCallback, useState, useSyncExternalStore } from 'react';

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });
const steps = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

function relative(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000);
  for (const [unit, size] of steps)
    if (Math.abs(seconds) >= size) return words.format(Math.trunc(seconds / size), unit);
  return Math.abs(seconds) < 3 ? 'now' : words.format(seconds, 'second');
}

let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  if (!document.hidden) for (const listener of listeners) listener();
}, 1000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** One timer for all times of the page. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

/** The text of a time. It changes every second, minute or hour, and its component is drawn again then. */
function useRelative(at: string | null | undefined): string {
  const text = useCallback(() => (at ? relative(Date.parse(at), now) : ''), [at]);
  return useSyncExternalStore(subscribe, text);
}

/** One for all: making a formatter takes longer than using it a hundred times. */
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/**
 * A time in relation to now, with the exact one on hover. A list has fifty of them, so a time gets its tooltip on
 * the first hover.
 */
export function Time({ at }: { at: string | null | undefined }) {
  const said = useRelative(at);
  const [met, setMet] = useState(false);
  if (!at) return <>–</>;
  const exact = new Date(at);
  const time = (
    <time dateTime={at} className="nowrap" onPointerEnter={() => setMet(true)}>
      {said}
    </time>
  );
  return met ? (
    <Tooltip label={whole.format(exact)} events={hoverAndFocus}>
      {time}
    </Tooltip>
  ) : (
    time
  );
}

const hoverAndFocus = { hover: true, focus: true, touch: true };

export function span(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

export function bytes(count: number | undefined): string {
  if (count === undefined) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let size = count;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
