import { statSync, createWriteStream } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { withoutEnd } from '../../lib/text.ts';
import { ask, askJson, bytesOf, whole, type Question, type Target } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { Refused, UsageError } from '../fault.ts';
import { fileUpload, multipart } from '../multipart.ts';
import { size } from '../output.ts';
import { counted, openProgress } from '../progress.ts';
import { word, type Call } from '../table.ts';

interface Place {
  session?: string;
  path: string;
}

/** `my-session:/tmp/a.txt` is inside a session; what begins with a dot or a slash never is. */
export function placeOf(text: string): Place {
  const found = /^([^/:.][^/:]*):(\/.*)$/s.exec(text);
  return found ? { session: found[1]!, path: found[2]! } : { path: text };
}

const inside = (session: string, verb: string) => fillPath(`/browsers/{id}/fs/${verb}`, [session]);

export async function copy(call: Call): Promise<void> {
  const [from, to] = [placeOf(word(call, 0)), placeOf(word(call, 1))];
  if (Boolean(from.session) === Boolean(to.session))
    throw new UsageError(
      'One of the two is inside a session, as ID:/path, and the other on this machine. `corral browsers fs mv` moves inside a session.',
    );
  if (to.session) return upload(call, from.path, to.session, to.path);
  return download(call, from.session!, from.path, to.path);
}

async function upload(call: Call, from: string, session: string, to: string): Promise<void> {
  const found = statSync(from, { throwIfNoEntry: false });
  if (!found) throw new UsageError(`There is no ${from} on this machine.`);
  const target = call.target();
  const asked = {
    method: 'GET',
    path: inside(session, 'file_info'),
    query: { path: withoutEnd(to, '/') || to.slice(0, 1) },
  };
  const there = await orNothing(askJson<{ is_dir: boolean }>(target, asked));
  const into = to.endsWith('/') || there?.is_dir ? posix.join(to, basename(from)) : to;
  if (!found.isDirectory()) {
    const body = fileUpload(from);
    const headers = { 'content-type': 'application/octet-stream' };
    await send(target, { method: 'PUT', path: inside(session, 'write_file'), query: { path: into }, body, headers });
    return call.output.done(`${session}:${into}  ${size(found.size)}`, { path: into, bytes: found.size });
  }
  if (!call.options['recursive']) throw new UsageError(`${from} is a directory: add -r.`);
  const { zipOf } = await import('../archive.ts');
  const bytes = await zipOf(from);
  const form = multipart([
    ['dest_path', into],
    ['zip_file', { name: `${basename(from)}.zip`, bytes }],
  ]);
  await send(target, { method: 'POST', path: inside(session, 'upload_zip'), ...form });
  call.output.done(`${session}:${into}`, { path: into });
}

async function download(call: Call, session: string, from: string, to: string): Promise<void> {
  const target = call.target();
  const info = { method: 'GET', path: inside(session, 'file_info'), query: { path: from } };
  const { is_dir } = await askJson<{ is_dir: boolean }>(target, info);
  const there = statSync(to, { throwIfNoEntry: false });
  const into = there?.isDirectory() ? join(to, posix.basename(from)) : to;
  if (is_dir && !call.options['recursive']) throw new UsageError(`${from} is a directory: add -r.`);
  const verb = is_dir ? 'download_dir_zip' : 'read_file';
  const answer = await ask(target, { method: 'GET', path: inside(session, verb), query: { path: from } });
  const progress = openProgress(posix.basename(from), Number(answer.headers['content-length'] ?? 0));
  const bytes = counted(whole(answer), progress);
  if (is_dir) await (await import('../archive.ts')).unzipTo(await bytesOf(bytes), into);
  else await pipeline(bytes, createWriteStream(into));
  call.output.done(`${into}  ${size(progress.count())}`, { path: into, bytes: progress.count() });
}

export async function cat(call: Call): Promise<void> {
  const path = inside(word(call, 0), 'read_file');
  const answer = await ask(call.target(), { method: 'GET', path, query: call.query });
  if (call.output.format === 'table') return pipeline(whole(answer), process.stdout, { end: false });
  const bytes = await bytesOf(answer);
  call.output.one({ path: call.query['path'], bytes: bytes.length, data_b64: bytes.toString('base64') });
}

export async function write(call: Call): Promise<void> {
  const path = inside(word(call, 0), 'write_file');
  const headers = { 'content-type': 'application/octet-stream' };
  await send(call.target(), { method: 'PUT', path, query: call.query, body: { stream: process.stdin }, headers });
  call.output.done(`Wrote ${word(call, 1)}.`);
}

export async function remove(call: Call): Promise<void> {
  const verb = call.options['recursive'] ? 'delete_directory' : 'delete_file';
  const path = inside(word(call, 0), verb);
  await send(call.target(), { method: 'PUT', path, body: { path: word(call, 1) } });
  call.output.done(`Removed ${word(call, 1)}.`);
}

async function send(target: Target, question: Question): Promise<void> {
  (await ask(target, question)).resume();
}

/** Undefined if the path does not exist. If the session does not exist, the next request reports it. */
async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined;
    throw error;
  }
}
