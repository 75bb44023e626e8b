import { fetchRaw } from './client.ts';

/** The events of a stream, each parsed, until it ends or `signal` ends it. EventSource cannot send a key, so the stream is read here. */
export async function* eventsOf<T>(
  path: string,
  signal: AbortSignal,
  /** `quietMs`: a stream without a byte for this time is broken. */
  { headers = {}, quietMs }: { headers?: Record<string, string>; quietMs?: number } = {},
): AsyncGenerator<T> {
  const response = await fetchRaw(path, { signal, headers: { Accept: 'text/event-stream', ...headers } });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const read = () => (quietMs === undefined ? reader.read() : within(quietMs, reader));
  let rest = '';
  for (;;) {
    const { done, value } = await read();
    if (done) return;
    rest += value;
    const whole = rest.split(/\r?\n\r?\n/);
    rest = whole.pop() ?? '';
    for (const block of whole) {
      const data = block
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      if (data) yield JSON.parse(data) as T;
    }
  }
}

/** The next chunk. If none arrives in time, the stream is cancelled and ends. */
async function within(ms: number, reader: ReadableStreamDefaultReader<string>) {
  const late = setTimeout(() => void reader.cancel(), ms);
  try {
    return await reader.read();
  } finally {
    clearTimeout(late);
  }
}
