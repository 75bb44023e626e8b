import { readFileSync, readdirSync } from 'node:fs';

/** The remains of a process and everything it started: its descendants, and the members of its kernel session. */
interface Member {
  pid: number;
  parent: number;
  session: number;
  /** Processor time so far, in clock ticks. */
  ticks: number;
  state: string;
}

export function members(leader: number): Member[] {
  const all = new Map<number, Member>();
  for (const name of readdirSync('/proc')) {
    const found = /^\d+$/.test(name) ? look(Number(name)) : undefined;
    if (found && found.state !== 'Z') all.set(found.pid, found);
  }
  const those = new Set([...all.values()].filter(({ pid, session }) => pid === leader || session === leader));
  for (let before = -1; before !== those.size;) {
    before = those.size;
    const pids = new Set([...those].map(({ pid }) => pid));
    for (const one of all.values()) if (pids.has(one.parent)) those.add(one);
  }
  return [...those];
}

/** Signals each of them. They need not be stopped first: children forked in between are found the next time. */
export function signalTree(leader: number, signal: NodeJS.Signals): number {
  const those = members(leader);
  for (const { pid } of those) send(pid, signal);
  return those.length;
}

/** Kills until no process is left. */
export async function killTree(leader: number): Promise<void> {
  for (let round = 0; round < 200 && signalTree(leader, 'SIGKILL') > 0; round++) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(round, 20)));
  }
}

/** Shared pages are counted proportionally, where the kernel provides that. */
export function memoryOf(those: Member[]): number {
  return those.reduce((sum, { pid }) => sum + memory(pid), 0);
}

function memory(pid: number): number {
  const rollup = text(`/proc/${pid}/smaps_rollup`);
  if (rollup !== '') return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
  const [, resident = 0] = text(`/proc/${pid}/statm`).split(' ').map(Number);
  return resident * 4096;
}

function look(pid: number): Member | undefined {
  const line = text(`/proc/${pid}/stat`);
  if (line === '') return undefined;
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' '); // the name may hold spaces and brackets
  const [state = '', parent, , session] = fields;
  const ticks = [11, 12].reduce((sum, index) => sum + Number(fields[index]), 0); // user and system time
  return { pid, state, parent: Number(parent), session: Number(session), ticks };
}

function send(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal);
  } catch {} // exited
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
