import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Caller } from '../lib/caller.ts';
import { hungUp } from './hung-up.ts';

/** What the first node found out about a request that it sends on. */
export interface Passenger {
  requestId: string;
  clientIp: string;
  caller: Caller | null;
  project: { id: string; name: string } | null;
  /** sha-256 of the body that it was sent with, where the first node knew it. */
  bodyDigest?: string;
}

/** A request, as far as it says where it belongs. */
export interface Asked {
  method: string;
  /** The pattern of its route. */
  route: string;
  params: Record<string, string>;
  query: Record<string, unknown>;
  projectId: string | null;
}

/** The other nodes, as the front door sees them. */
export interface Elsewhere {
  /** Undefined when this node may serve; otherwise resolves as soon as it may, and rejects when it may not. */
  ready(): Promise<void> | undefined;
  /** Who a request speaks for, when another node has let it in and sent it here. */
  passengerOf(request: IncomingMessage): Passenger | undefined;
  /** The node that has to answer, when it is not this one. */
  nodeFor(asked: Asked): Promise<string | undefined> | undefined;
  forward(
    nodeId: string,
    request: IncomingMessage,
    passenger: Passenger,
    hungUp: AbortSignal,
  ): Promise<{ status: number; headers: Record<string, string | string[]>; body: Readable }>;
}

/**
 * Before the body is read, so that it streams through. A request that was sent here by another node is answered here,
 * whatever we think of it: two nodes that disagree must not play ball with it.
 */
export async function answerElsewhere(request: FastifyRequest, reply: FastifyReply, elsewhere: Elsewhere) {
  if (request.passenger) return undefined;
  const nodeId = await elsewhere.nodeFor({
    method: request.method,
    route: request.routeOptions.url ?? '',
    params: request.params as Record<string, string>,
    query: request.query as Record<string, unknown>,
    projectId: request.project?.id ?? null,
  });
  if (nodeId === undefined) return undefined;
  refuseTooLarge(request);
  const { id: requestId, clientIp, caller, project } = request;
  const passenger = { requestId, clientIp, caller, project };
  const { status, headers, body } = await elsewhere.forward(nodeId, request.raw, passenger, hungUp(reply));
  // Events that wait for their first frame have long sent their headers; ours must not wait for it either.
  reply.raw.once('pipe', () => reply.raw.flushHeaders());
  return reply.code(status).headers(headers).send(body);
}

/**
 * What the other node would refuse unread is refused here: it would close the connection while we still send, and its answer
 * would be lost. Only JSON is read whole; the limit is the same everywhere.
 */
function refuseTooLarge({ headers, routeOptions }: FastifyRequest) {
  const limit = routeOptions.bodyLimit;
  const json = /^application\/json\b/i.test(headers['content-type'] ?? '');
  if (json && limit !== undefined && Number(headers['content-length'] ?? 0) > limit) {
    throw errors.payload_too_large({ limit });
  }
}
