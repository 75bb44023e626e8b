import { spawn, type SpawnOptions } from 'node:child_process';
import { andNoOther } from '../sandbox/descriptors.ts';

/** The default frame rate of a display. */
export const DEFAULT_REFRESH_RATE = 60;

const DEADLINE_MS = 10_000;
/** vncconfig exits with 0 also when the display refuses, so the value is read back. */
const SCRIPT = 'vncconfig -display "$1" -set "FrameRate=$2" && exec vncconfig -display "$1" -get FrameRate';

/**
 * Sets the most updates a second that a running display sends to each viewer. Only a client of the X server can do that, and the service
 * is none: a process in the session does it. If the session interferes, only its own display is concerned.
 */
export async function setRefreshRate(
  {
    inside,
    adopt,
  }: {
    inside: (command: readonly string[]) => { file: string; args: string[]; options: SpawnOptions };
    adopt: (pid: number) => void;
  },
  display: string,
  rate: number,
): Promise<void> {
  const { file, args, options } = inside(['sh', '-c', SCRIPT, 'corral', display, String(rate)]);
  const child = spawn(file, args, { ...options, detached: true, stdio: andNoOther('ignore', 'pipe', 'ignore') });
  if (child.pid !== undefined) adopt(child.pid);
  const kill = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
  let said = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(0, 100)));
  try {
    await new Promise<void>((resolve) => child.once('error', () => resolve()).once('close', () => resolve()));
  } finally {
    clearTimeout(kill);
  }
  if (said.trim() !== String(rate)) throw new Error(`The display did not take the refresh rate ${rate}.`);
}
