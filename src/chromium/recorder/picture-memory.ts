import type { Group } from '../../lib/byte-budget.ts';
import { sessionsBytes } from '../../lib/machine-memory.ts';

/** A project may hold this many times as much as is free: there is always room for the next one. */
const PART_OF_FREE = 3;
/** Half of the memory left to the service when sessions use all they may, or this part of the sessions' memory. */
const LEAST_BYTES = 512 * 2 ** 20;
const PART_OF_SESSIONS = 1 / 16;

/** There is no memory for the pictures of one more recording. */
export class NoPictureMemory extends Error {
  override readonly name = 'NoPictureMemory';
}

/** The memory for the pictures of all recordings of a node. A picture of a large display has 32 MiB, and each recording holds a few. */
export function pictureMemory(total: number) {
  const projects = new Map<Group, number>();
  let used = 0;

  function add(project: Group, bytes: number): void {
    used += bytes;
    const left = (projects.get(project) ?? 0) + bytes;
    if (left > 0) projects.set(project, left);
    else projects.delete(project);
  }

  return {
    /** Takes memory for a recording of a session, and returns what gives it back, once. Throws if there is none. */
    take(session: Group, bytes: number): () => void {
      const project = session.parent ?? session;
      if ((projects.get(project) ?? 0) + bytes > PART_OF_FREE * (total - used - bytes)) throw new NoPictureMemory();
      add(project, bytes);
      let held = true;
      return () => {
        if (held) add(project, -bytes);
        held = false;
      };
    },
  };
}

const total = Math.max(LEAST_BYTES, sessionsBytes() * PART_OF_SESSIONS);
export const pictures = pictureMemory(total);
/** The same for the videos in the replay buffers of a node. */
export const buffers = pictureMemory(total);
