/** Shown at most this often. */
const EVERY_MS = 100;

interface Progress {
  add(bytes: number): void;
  count(): number;
  end(): void;
}

/** A bar on stderr while it is a terminal: in a log it would be noise. `total` is 0 when nothing is known about it. */
export function openProgress(title: string, total: number, stream: NodeJS.WriteStream = process.stderr): Progress {
  let count = 0;
  let shown = 0;
  return {
    add(bytes) {
      count += bytes;
      const now = Date.now();
      if (!stream.isTTY || now - shown < EVERY_MS) return;
      shown = now;
      stream.write(`\r\x1b[K${bar(title, count, total, stream.columns || 80)}`);
    },
    count: () => count,
    end() {
      if (shown > 0) stream.write('\r\x1b[K');
      shown = 0;
    },
  };
}

export function bar(title: string, count: number, total: number, columns: number): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  if (total === 0) return `${title}  ${megabytes(count)}`.slice(0, columns - 1);
  const part = Math.min(1, count / total);
  const width = 24;
  const full = Math.round(part * width);
  const drawn = `${'#'.repeat(full)}${'.'.repeat(width - full)}`;
  return `${title}  ${drawn} ${String(Math.floor(part * 100)).padStart(3)} %  ${megabytes(total)}`.slice(
    0,
    columns - 1,
  );
}

/** What passes by, counted. */
export async function* counted(stream: AsyncIterable<Buffer>, progress: Progress): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) {
      progress.add(chunk.length);
      yield chunk;
    }
  } finally {
    progress.end();
  }
}
