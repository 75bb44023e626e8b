import { randomBytes } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { Upload } from './client/http.ts';
import { UsageError } from './fault.ts';
import { openProgress } from './progress.ts';

export type Part = readonly [name: string, value: string | { path: string } | { name: string; bytes: Buffer }];

/** A form with files in it, read while it is sent. Its length is known beforehand, so that a service can refuse a body that is too large. */
export function multipart(parts: readonly Part[]): { body: Upload; headers: Record<string, string> } {
  const boundary = `corral-${randomBytes(12).toString('hex')}`;
  const pieces = parts.flatMap(([name, value]) => [
    Buffer.from(`--${boundary}\r\n${headOf(name, value)}\r\n\r\n`),
    typeof value === 'string' ? Buffer.from(value) : 'path' in value ? value : value.bytes,
    Buffer.from('\r\n'),
  ]);
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  const bytes = pieces.reduce((sum, piece) => sum + (Buffer.isBuffer(piece) ? piece.length : sizeOf(piece.path)), 0);
  const title = parts.flatMap(([, value]) => (typeof value === 'string' ? [] : [fileName(value)]))[0] ?? 'form';
  return {
    body: { stream: Readable.from(send(pieces, title, bytes)), bytes },
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  };
}

/** A local file as a body, with a bar while it is sent. */
export function fileUpload(path: string): Upload {
  const bytes = sizeOf(path);
  return { stream: Readable.from(send([{ path }], basename(path), bytes)), bytes };
}

async function* send(pieces: readonly (Buffer | { path: string })[], title: string, total: number) {
  const progress = openProgress(title, total);
  try {
    for (const piece of pieces) {
      for await (const chunk of Buffer.isBuffer(piece) ? cut(piece) : createReadStream(piece.path)) {
        yield chunk as Buffer;
        progress.add((chunk as Buffer).length);
      }
    }
  } finally {
    progress.end();
  }
}

/** Small steps, so that the bar moves. */
function* cut(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

function headOf(name: string, value: Part[1]): string {
  const disposition = `Content-Disposition: form-data; name="${escaped(name)}"`;
  if (typeof value === 'string') return disposition;
  return `${disposition}; filename="${escaped(fileName(value))}"\r\nContent-Type: application/octet-stream`;
}

function fileName(value: Exclude<Part[1], string>): string {
  return 'path' in value ? basename(value.path) : value.name;
}

function escaped(text: string): string {
  return text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile()) throw new UsageError(`There is no file ${path}.`);
  return found.size;
}
