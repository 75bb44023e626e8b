import { basename } from 'node:path';
import type { Guest } from '../../chromium/guest/guest.ts';
import { TAIL_BYTES } from '../../chromium/guest/protocol.ts';
import { within } from '../../lib/deadline.ts';

/** How many processes of a session are remembered: the newest. */
const mostProcesses = 8;
/** How long the end of a session may wait for the lines of processes that still run. */
const patienceMs = 300;

interface Remembered {
  /** The program without its arguments, which may hold secrets. */
  readonly name: string;
  readonly pid: number;
  /** Undefined while it runs. */
  lines?: readonly string[];
}

const remembered = new WeakMap<Guest, Map<string, Remembered>>();

/** Remembers a process that was started in a session, for the session's log. */
export function rememberProcess(guest: Guest, id: string, { command, pid }: { command: string; pid: number }): void {
  const those = remembered.get(guest) ?? new Map<string, Remembered>();
  remembered.set(guest, those);
  those.set(id, { name: basename(command), pid });
  const [oldest] = those.keys();
  if (those.size > mostProcesses && oldest !== undefined) those.delete(oldest);
}

/** Takes the last lines of a process that has exited: its session may sleep from now on. Never rejects. */
export async function takeTail(guest: Guest, id: string): Promise<void> {
  const process = remembered.get(guest)?.get(id);
  if (process) process.lines = await tailOf(guest, id).catch(() => []);
}

/** A process ended with its guest. Asking for its lines would start another guest, which knows nothing of it. */
export function loseTail(guest: Guest, id: string): void {
  const process = remembered.get(guest)?.get(id);
  if (process) process.lines = ['was killed'];
}

/** The session gets another holder, which must not read output of the last holder's processes. */
export const forgetProcesses = (guest: Guest): void => void remembered.delete(guest);

/** The last lines of the session's newest processes, oldest process first. Asks for those of processes that still run. */
export async function processLines(guest: Guest): Promise<string[]> {
  const those = [...(remembered.get(guest) ?? [])];
  if (those.length === 0) return [];
  const lines = await Promise.all(
    those.map(async ([id, { name, pid, lines: kept }]) => {
      const said = kept ?? (await within(patienceMs, 'The guest', tailOf(guest, id)).catch(() => []));
      return said.map((line) => `${name}[${pid}]: ${line}`);
    }),
  );
  return lines.flat();
}

async function tailOf(guest: Guest, id: string): Promise<string[]> {
  const { tail_b64, exit_code } = await guest.call('tail', { process_id: id });
  const bytes = Buffer.from(tail_b64, 'base64');
  const lines = bytes.toString().split(/\r?\n/);
  if (bytes.length >= TAIL_BYTES) lines.shift(); // it may be cut
  const said = lines.filter((line) => line.trim() !== '');
  return exit_code === null ? said : [...said, `exited with code ${exit_code}`];
}
