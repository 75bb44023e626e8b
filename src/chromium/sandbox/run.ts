import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { andNoOther } from './descriptors.ts';

const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/** Of what a program says: `rm` says a line with a whole path for each name of a session that it cannot remove. */
const MOST_SAID = 1000;

/** Runs a program to its end, without the service's descriptors and environment. Rejects with the program's stderr. */
export async function run(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(file, args, { stdio: andNoOther('ignore', 'ignore', 'pipe'), cwd: '/', env: { PATH } });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [code, said] = await Promise.all([ended, beginningOf(child.stderr!)]);
  if (code !== 0) throw new Error(`${file} ended with ${code}. ${said.trim()}`);
}

/** Reads a stream to its end, and keeps its beginning. */
async function beginningOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const part of stream.setEncoding('utf8') as AsyncIterable<string>)
    if (text.length < MOST_SAID) text += part.slice(0, MOST_SAID - text.length);
  return text;
}
