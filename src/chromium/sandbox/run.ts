import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { andNoOther } from './descriptors.ts';

const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/** Runs a program to its end, without the service's descriptors and environment. Rejects with the program's stderr. */
export async function run(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(file, args, { stdio: andNoOther('ignore', 'ignore', 'pipe'), cwd: '/', env: { PATH } });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [code, said] = await Promise.all([ended, text(child.stderr!)]);
  if (code !== 0) throw new Error(`${file} ended with ${code}. ${said.slice(0, 1000).trim()}`);
}
