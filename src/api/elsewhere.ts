import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Passenger } from '../lib/caller.ts';
import { clockOf } from './body-clock.ts';
import { hungUp } from './hung-up.ts';

/** The parts of a request that decide which node serves it. */
interface Asked {
  method: string;
  /** The pattern of its route. */
  route: string;
  params: Record<string, string>;
  query: Record<string, unknown>;
  projectId: string | null;
}

/** The other nodes, as the HTTP server sees them. */
export interface Elsewhere {
  /** Undefined when this node may serve; otherwise resolves as soon as it may, and rejects when it may not. */
  ready(): Promise<void> | undefined;
  /** The caller of a request that another node authenticated and forwarded. */
  passengerOf(request: IncomingMessage): Passenger | undefined;
  /** The node that has to serve the request, when it is not this one. */
  nodeFor(asked: Asked): Promise<string | undefined> | undefined;
  /** `over` aborts when the client disconnects or its body stalls. */
  forward(
    nodeId: string,
    request: IncomingMessage,
    passenger: Passenger,
    over: AbortSignal,
  ): Promise<{ status: number; headers: Record<string, string | string[]>; body: Readable }>;
}

/**
 * Forwards before the body is read, so that it streams through. A forwarded request is always served here, so that two
 * nodes that disagree do not forward it in circles.
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
  const stalled = clockOf(request)?.stalled;
  const over = stalled ? AbortSignal.any([hungUp(reply), stalled]) : hungUp(reply);
  const { status, headers, body } = await elsewhere.forward(nodeId, request.raw, passenger, over);
  // Event streams send their headers before the first frame, so this node does not wait for the first frame either.
  reply.raw.once('pipe', () => reply.raw.flushHeaders());
  return reply.code(status).headers(headers).send(body);
}

/**
 * Refuses bodies that the other node would refuse unread: it would close the connection while this node still sends, and
 * its answer would be lost. Only JSON is read whole; the limit is the same on all nodes.
 */
function refuseTooLarge({ headers, routeOptions }: FastifyRequest) {
  const limit = routeOptions.bodyLimit;
  const json = /^application\/json\b/i.test(headers['content-type'] ?? '');
  if (json && limit !== undefined && Number(headers['content-length'] ?? 0) > limit) {
    throw errors.payload_too_large({ limit });
  }
}
