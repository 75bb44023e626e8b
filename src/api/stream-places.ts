import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';

/** The event streams that a session or an auth connection may have. The service keeps up to 320 KiB for a reader that does not read. */
const mostStreams = 64;
/** The same for a project: of its changes, of its deployments, and of its invocations. */
const mostOfProject = 500;

const open = new Map<string, number>();

/** Takes a place for an event stream, until its reader disconnects. Throws when there is no place left. */
export function takeStreamPlace(id: string, { raw }: FastifyReply, of = 'session', most = mostStreams): void {
  const before = open.get(id) ?? 0;
  if (before >= most) throw errors.too_many_streams({ of, most });
  if (raw.destroyed) return; // the reader has disconnected, and `close` was emitted
  open.set(id, before + 1);
  raw.once('close', () => {
    const left = open.get(id)! - 1;
    if (left > 0) open.set(id, left);
    else open.delete(id);
  });
}

/** The same for the streams of one kind that a project has. */
export const takeProjectPlace = (
  project: string,
  kind: 'events' | 'deployments' | 'invocations',
  reply: FastifyReply,
) => takeStreamPlace(`${kind} of ${project}`, reply, 'project', mostOfProject);
