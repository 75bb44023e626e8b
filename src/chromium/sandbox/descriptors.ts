import type { StdioOptions } from 'node:child_process';
import { existsSync, openSync, readFileSync, readdirSync } from 'node:fs';

const CLOSE_ON_EXEC = 0o2000000;

export type Descriptor = number | 'pipe' | 'ignore' | 'ipc';

/**
 * Descriptors that Node opens are closed on exec, but those the service inherited are not: a shell's or a supervisor's descriptors
 * would be open in every browser. They cannot be closed from here, so each is replaced by /dev/null.
 */
export function andNoOther(...wanted: Descriptor[]): StdioOptions {
  const stdio = [...wanted];
  for (const descriptor of inherited()) {
    if (descriptor < wanted.length) continue;
    while (stdio.length < descriptor) stdio.push('ignore'); // from 3 on 'ignore' leaves a descriptor as it is
    stdio[descriptor] = devNull ??= openSync('/dev/null', 'r+');
  }
  return stdio;
}

let devNull: number | undefined;
let found: number[] | undefined;

function inherited(): number[] {
  return (found ??= existsSync('/proc/self/fdinfo')
    ? readdirSync('/proc/self/fdinfo').filter(staysOpen).map(Number)
    : []);
}

function staysOpen(descriptor: string): boolean {
  try {
    const flags = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // the descriptor used to read the directory
  }
}
