import { createHash } from 'node:crypto';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Socket } from 'node:net';
import { createServer, STATUS_CODES, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { errors, ServiceError } from '../errors.ts';
import { Overdue } from '../lib/deadline.ts';
import { newId } from '../lib/ids.ts';
import { NoRoom } from '../lib/memory-share.ts';
import { nosniff, UnsniffedResponse } from '../lib/nosniff.ts';
import { pacedRequests } from '../lib/paced-requests.ts';
import { onBehalfOf, type Owner } from '../lib/scope.ts';
import { isUndeclared } from './answers.ts';
import { clockOf, guarded, hasBody, watchBodies } from './body-clock.ts';
import {
  countAnswered,
  countedAnswer,
  countedBody,
  countFailed,
  countingHandler,
  countParsed,
  refuseHeavy,
} from './large.ts';
import { accessOf, admit, type Gatekeeper, type Invitations, type SessionTokens } from './caller.ts';
import { answerElsewhere, type Elsewhere } from './elsewhere.ts';
import { registerOpenApi } from './openapi.ts';
import { parseBody } from './body.ts';
import { parseQuery } from './query.ts';
import { decode } from '../lib/utf8.ts';
import { serializersOnDemand } from './serialization.ts';
import { alsoBelowBaseUrl } from './session-paths.ts';
import { lookForUnknownFields, withWarnings } from './unknown-fields.ts';
import { InvalidInput, validatorCompiler } from './validation.ts';

/** Records each request that may have changed something. */
interface AuditTrail {
  record(request: FastifyRequest, status: number, durationMs: number): Promise<void>;
}

export type Server = Awaited<ReturnType<typeof httpServer>>;

const bodyLimit = 1024 * 1024;

export async function httpServer(options: {
  gate: Gatekeeper;
  /** Without it, no route admits invitees. */
  invitations?: Invitations;
  /** The path of the route for a request's host and path. */
  pathAt?: (host: string | undefined, path: string) => string;
  /** Without it, nothing is served below the addresses of sessions. */
  sessionTokens?: SessionTokens;
  audit: AuditTrail;
  logger: FastifyBaseLogger;
  trustProxy: readonly string[];
  elsewhere: Elsewhere;
  /** How long a body may stall. */
  bodySeconds: number;
}) {
  const {
    pathAt = (_, path) => path,
    gate,
    invitations,
    sessionTokens,
    audit,
    logger,
    trustProxy,
    elsewhere,
    bodySeconds,
  } = options;
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // one line per request, below, instead of two
    trustProxy: trustProxy.length > 0 ? [...trustProxy] : false,
    genReqId: () => newId('req_'),
    requestIdHeader: false,
    bodyLimit,
    serverFactory: (handle) =>
      createServer(
        {
          ServerResponse: UnsniffedResponse,
          keepAliveTimeout: 72_000, // longer than the minute after which load balancers close idle connections
          requestTimeout: 0, // a large upload may take long; body-clock.ts bounds the time without progress
          headersTimeout: 60_000, // Node's default is the requestTimeout when that is shorter: none
        },
        pacedRequests(handle),
      ),
    rewriteUrl: (request) => modernPath(frontPage(request, pathAt(request.headers.host, request.url ?? '/'))),
    routerOptions: { querystringParser: parseQuery, maxParamLength: 1024, ignoreTrailingSlash: true },
    clientErrorHandler,
    frameworkErrors: (error, request, reply) => answerError(error, request, reply), // a URL that cannot be decoded fails before routing
    forceCloseConnections: true,
    schemaController: { compilersFactory: { buildSerializer: serializersOnDemand } },
  }).withTypeProvider<TypeBoxTypeProvider>();

  watchBodies(app.server, bodySeconds);
  await registerOpenApi(app);
  alsoBelowBaseUrl(app);
  app.addHook('onRoute', (route) => void (route.handler = countingHandler(route.handler)));
  app.setValidatorCompiler(validatorCompiler());
  app.decorateRequest('caller', null);
  app.decorateRequest('project', null);
  app.decorateRequest('invitee', null);
  app.decorateRequest('clientIp', '');
  app.decorateRequest('passenger', null);
  app.decorateRequest('ignored', null);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    refuseHeavy(request, body);
    const { passenger } = request;
    if (passenger?.bodyDigest !== undefined && passenger.bodyDigest !== digestOf(body))
      throw errors.unauthorized({ detail: 'This is not the body that the other node sent.' });
    return parseBody(await decode(body));
  });

  // The first hook. The owner is set again after the body, because listeners of the socket run without an owner.
  app.addHook('onRequest', (request, reply, done) => onBehalfOf(ownerOf(request, reply), done));
  app.addHook('preValidation', (request, reply, done) => onBehalfOf(ownerOf(request, reply), done));
  app.addHook('onRequest', async (request, reply) => {
    request.passenger = elsewhere.passengerOf(request.raw) ?? null;
    if (request.passenger) {
      request.id = request.passenger.requestId; // a forwarded request has the same id on both nodes
      clockOf(request)?.fromAnotherNode();
    }
    void reply.header('X-Request-Id', request.id);
    request.clientIp = request.passenger?.clientIp ?? request.ip ?? '';
    if (request.routeOptions.config.invitees) void reply.headers(forAnyOrigin);
    if (/%00/.test(request.url))
      throw errors.bad_request({ detail: 'The address has a NUL character (%00); no path or parameter takes one.' });
    if (accessOf(request) !== 'public') await elsewhere.ready();
    await admit(request, gate, { invitations, sessionTokens });
    return answerElsewhere(request, reply, elsewhere);
  });
  app.addHook('preParsing', async (request, reply, payload) => {
    const { body } = request.routeOptions.config;
    if (!hasBody(request.raw)) return payload;
    if (body === 'form') return payload; // the form's parser reads the request itself: partsOf
    const arriving = guarded(request, payload);
    if (body === 'stream') return arriving;
    clockOf(request)?.readWhole();
    return countedBody(request, reply, arriving);
  });
  app.addHook('preValidation', async (request) => {
    countParsed(request);
    if (request.body === undefined && request.routeOptions.schema?.body) request.body = {};
  });
  app.addHook('preHandler', async (request, reply) => lookForUnknownFields(request, reply));
  // Recorded before the response is sent, so that every answered change has its entry. The node that authenticated the request writes it.
  app.addHook('onSend', async (request, reply, payload) => {
    countAnswered(request);
    if (payload instanceof Readable) payload.on('error', () => {}); // it may break off now; Fastify sees that when it sends it
    const { unaudited = false } = request.routeOptions.config;
    if (request.caller && !request.passenger && mayChange(request.method) && !unaudited)
      await audit.record(request, reply.statusCode, Math.round(reply.elapsedTime));
    return countedAnswer(reply, withWarnings(request, reply, payload));
  });
  app.addHook('onResponse', async (request, reply) => {
    const facts = {
      requestId: request.id,
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    };
    if (mayChange(request.method) || reply.statusCode >= 500) request.log.info(facts, 'request');
    else request.log.debug(facts, 'request');
  });

  app.setNotFoundHandler((request) => {
    throw errors.not_found({
      detail: `Nothing is served at ${request.method} ${pathOf(request)}. /docs lists the paths.`,
    });
  });

  app.setErrorHandler(answerError);
  return app;
}

/** If the service fails while handling a request, it answers with 500, or cuts off the answer that it has begun. */
function ownerOf(request: FastifyRequest, reply: FastifyReply): Owner {
  return {
    kind: 'request',
    id: request.id,
    end(error) {
      countFailed(request);
      if (reply.raw.writableEnded) return;
      if (reply.sent || reply.raw.headersSent) reply.raw.destroy();
      else void reply.send(error);
    },
  };
}

/** Errors are thrown anywhere and become responses here. Only unexpected errors are faults of the service and logged as such. */
function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
  const answer = refusal(error, request) ?? errors.internal({ requestId: request.id });
  if (answer.status >= 500)
    request.log[isFault(answer) ? 'error' : 'warn'](
      { requestId: request.id, code: answer.code, error },
      'request.failed',
    );
  if (isUndeclared(request.routeOptions, answer.code))
    request.log.warn(
      {
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url,
        code: answer.code,
        status: answer.status,
      },
      'request.refused_against_reference',
    );
  const { details, body, headers } = answer.extras;
  if (headers) void reply.headers(headers);
  if (answer.code === 'body_timeout') void reply.header('Connection', 'close'); // the rest of the body would be read as a request
  const wouldRetry = answer.status === 409 || answer.status >= 500;
  if (wouldRetry && !answer.retriable) void reply.header('x-should-retry', 'false');
  void reply
    .code(answer.status)
    .header('X-Request-Id', request.id)
    .type('application/json')
    .serializer(JSON.stringify)
    .send({ code: answer.code, message: answer.message, ...(details ? { details } : {}), ...body });
}

/**
 * 500 is a fault of the service, except for a command that takes longer than its request allows. Other 5xx mean that the service cannot
 * serve now: it is full, stopping, or waiting for another part.
 */
const isFault = ({ status, code }: ServiceError) => status === 500 && code !== 'process_timed_out';

const forAnyOrigin = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'X-Request-Id, Retry-After',
};

/** `/projects…` is the older spelling of `/org/projects…`. */
const modernPath = (url: string) => (/^\/projects(?=[/?]|$)/.test(url) ? `/org${url}` : url);

/** The address of the service itself is the console, for browsers. Programs are answered as at any path without a route. */
function frontPage({ method, headers }: IncomingMessage, url: string): string {
  const page = method === 'GET' && /^\/(\?|$)/.test(url) && headers.accept?.includes('text/html');
  return page ? `/console${url.slice(1)}` : url;
}

const mayChange = (method: string) => !['GET', 'HEAD', 'OPTIONS'].includes(method);

export const pathOf = (request: FastifyRequest) => request.url.split('?', 1)[0] ?? '';

function refusal(error: FastifyError, request: FastifyRequest): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  if (error instanceof Overdue) return errors.browser_silent({ detail: error.message }, { cause: error });
  if (error instanceof NoRoom) return errors.memory_full(undefined, { cause: error });
  if (error instanceof InvalidInput) {
    return errors.invalid_input(
      { detail: error.message },
      { details: [{ code: 'invalid_input', message: error.message }] },
    );
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return errors.payload_too_large({ limit: request.routeOptions.bodyLimit ?? bodyLimit });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return errors.unsupported_media_type({ type: String(request.headers['content-type']).slice(0, 100) });
  }
  // Errors of Fastify itself: malformed JSON, a wrong content length, a bad URL. Its messages name the problem.
  const theirs = error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500;
  return theirs ? errors.bad_request({ detail: error.message }) : undefined;
}

/** Input that is not HTTP is answered on the raw socket, since there is no request. */
function clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const body = JSON.stringify({
    code: 'bad_request',
    message: `This is not HTTP that we can read: ${STATUS_CODES[status]}.`,
  });
  const headers = {
    ...nosniff,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

const digestOf = (body: Buffer) => createHash('sha256').update(body).digest('base64url');
