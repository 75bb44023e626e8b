import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { turns } from '../../lib/turns.ts';
import { MEMORY_DISKS } from './mounts.ts';
import { memoryDisk } from './outside.ts';

/** Memory of a session that is a file: in a tmpfs of its own, or in a memfd. Much of it may be mapped by none of its processes. */
interface SharedMemory {
  /** Files of its tmpfs. Ending a process frees none of them. */
  readonly disks: number;
  /** Memfds, by a process that has each of them open. */
  readonly held: ReadonlyMap<number, number>;
  /** False: it has more descriptors than are looked at. */
  readonly complete: boolean;
}

const BLOCK = 512;
/** Of one session. A browser with a hundred tabs has ten thousand. */
const MOST_DESCRIPTORS = 100_000;

/** The shared memory of the whole machine, in bytes: of all tmpfs and memfds. One cheap call. */
export function machineSharedMemory(): number {
  return 1024 * Number(/^Shmem:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'latin1'))?.[1] ?? 0);
}

/**
 * The shared memory of the session with these processes. Nothing of the session is opened except the directories where its tmpfs are, and
 * those by descriptors. Memfds cannot be forbidden, because Chromium shares pictures by them, and RLIMIT_FSIZE would limit downloads too. A memfd
 * in transit in a socket that is open nowhere, and a System V segment that no process has attached, are not seen.
 */
export async function sharedMemory(pids: readonly number[]): Promise<SharedMemory> {
  const held = new Map<number, number>();
  const seen = new Set<number>();
  const turn = turns();
  let left = MOST_DESCRIPTORS;
  for (const pid of pids) {
    await turn();
    for (const descriptor of descriptorsOf(pid)) {
      if (left-- <= 0) return { disks: await disksOf(pids), held, complete: false };
      await turn();
      const path = `/proc/${pid}/fd/${descriptor}`;
      try {
        if (!readlinkSync(path).startsWith('/memfd:')) continue;
        const { ino, blocks } = statSync(path); // of the open file, not of its name
        if (seen.has(ino)) continue;
        seen.add(ino);
        held.set(pid, (held.get(pid) ?? 0) + blocks * BLOCK);
      } catch {
        // already closed
      }
    }
  }
  return { disks: await disksOf(pids), held, complete: true };
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return []; // exited
  }
}

/** A session has several mount namespaces, which show the same tmpfs, or in processes of the service's own the machine's. */
async function disksOf(pids: readonly number[]): Promise<number> {
  const counted = new Set<number>();
  for (const path of MEMORY_DISKS) {
    const own = statSync(path, { throwIfNoEntry: false });
    if (own) counted.add(own.dev);
  }
  const namespaces = new Set<string>();
  const turn = turns();
  let bytes = 0;
  for (const pid of pids) {
    await turn();
    try {
      const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
      if (readlinkSync(`/proc/${pid}/root`) !== '/' || namespaces.has(namespace)) continue;
      namespaces.add(namespace);
    } catch {
      continue; // exited
    }
    for (const path of MEMORY_DISKS) {
      const disk = await memoryDisk(pid, path).catch(() => undefined);
      if (!disk || counted.has(disk.dev)) continue;
      counted.add(disk.dev);
      bytes += disk.bytes;
    }
  }
  return bytes;
}
