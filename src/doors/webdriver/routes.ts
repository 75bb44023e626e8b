import type { IncomingMessage } from 'node:http';
import { pipeline, Transform, type TransformOptions } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { parseBody } from '../../api/body.ts';
import { callerOf, projectOf, selectorOf, type Gatekeeper } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { refuseHeavy } from '../../api/large.ts';
import { errors } from '../../errors.ts';
import { Overdue } from '../../lib/deadline.ts';
import type { Log } from '../../lib/log.ts';
import type { RateLimit } from '../../sessions/rate-limit.ts';
import type { Session } from '../../sessions/schema.ts';
import type { SessionService } from '../../sessions/service.ts';
import { isObject, readCapabilities } from './capabilities.ts';
import { valueOf } from './driver.ts';
import { refusalOf, WebDriverFault } from './fault.ts';
import { optionsOf } from './schema.ts';
import { webdriverService, type Made } from './service.ts';

/** Selenium's servers have everything below this path, and newer ones at the root too. */
const ROOTS = ['', '/wd/hub'];
/** A command with a file for an upload (`/se/file`) is the largest. */
const bodyLimit = 32 * 1024 * 1024;
/** The capabilities of a new session are as large as the body of `POST /browsers` at most. They are parsed, which takes time. */
const newSessionLimit = 6 * 1024 * 1024;
/** For clients that send the key in the body, which is read before the client is authenticated. */
const strangersLimit = 1024 * 1024;
const MOST_ANSWERED = 256 * 1024 * 1024;
const schema = { hide: true };
const json = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-cache' };

interface Deps {
  sessions: SessionService;
  gate: Gatekeeper;
  limit: RateLimit;
  log: Log;
}

/**
 * WebDriver, as classic clients speak it. Not part of the reference: it is a standard's interface, and its answers have the standard's
 * shape. A key arrives as a header says it (Bearer, or the password of Basic), or in the capability `corral:options`.
 */
export function webdriverRoutes({ sessions, gate, limit, log }: Deps): FastifyPluginAsyncTypebox {
  const webdriver = webdriverService({ sessions, log });
  return async (app) => {
    app.removeAllContentTypeParsers(); // clients name no type, or several; it is always JSON
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.setErrorHandler(answerRefusal);

    for (const root of ROOTS) {
      app.get(`${root}/status`, { config: { access: 'public' }, schema }, async () => {
        const lack = webdriver.lacks();
        return { value: { ready: lack === undefined, message: lack ?? 'New sessions are made here.' } };
      });

      app.post(
        `${root}/session`,
        {
          config: { access: 'project', webdriver: 'new' },
          bodyLimit: newSessionLimit,
          onRequest: refuseLargeOfStranger,
          schema,
        },
        async (request, reply) => {
          const disconnected = hungUp(reply);
          const body = bytesOf(request) ?? Buffer.alloc(0);
          refuseHeavy(request, body);
          const wanted = readCapabilities(parseBody(body.toString()));
          const byHeader = request.caller !== null;
          if (!request.caller) {
            if (wanted.apiKey === undefined) throw noKey();
            request.caller = await gate.authenticate(wanted.apiKey, request.clientIp);
            request.project = await gate.resolveProject(request.caller, selectorOf(request));
          }
          const options = optionsOf(wanted.options);
          if (limit) void reply.headers(await limit.take());
          const caller = { projectId: projectOf(request).id, keyId: callerOf(request).keyId };
          const made = await webdriver.create(caller, options, wanted, disconnected);
          return reply.headers(json).send({
            value: { sessionId: idFor(made.session, byHeader), capabilities: capabilitiesOf(made, wanted) },
          });
        },
      );

      app.delete(
        `${root}/session/:id`,
        { config: { access: 'project', webdriver: 'command' }, schema },
        async (request) => {
          await webdriver.remove(projectOf(request).id, idOf(request));
          return { value: null };
        },
      );

      for (const path of [`${root}/session/:id`, `${root}/session/:id/*`])
        app.route({
          method: path.endsWith('*') ? ['GET', 'POST', 'DELETE'] : 'GET',
          url: path,
          exposeHeadRoute: false,
          config: { access: 'project', webdriver: 'command', unaudited: true },
          bodyLimit,
          schema,
          handler: (request, reply) => (isWindowClose(request) ? closeWindow(request, reply) : pass(request, reply)),
        });
    }
  };

  function ask(request: FastifyRequest, reply: FastifyReply): Promise<IncomingMessage> {
    const disconnected = hungUp(reply);
    const session = /^(?:\/wd\/hub)?\/session\/[^/?]+/.exec(request.url)?.[0];
    const rest = session === undefined ? '' : request.url.slice(session.length);
    // Files for uploads: Selenium has renamed the path, chromedriver has not.
    const path = rest === '/se/file' ? '/file' : rest;
    const command = { method: request.method, rest: path, body: bytesOf(request) };
    return webdriver.command(projectOf(request).id, idOf(request), command, disconnected);
  }

  /** The answer goes through as it comes: a screenshot, or the source of a page. */
  async function pass(request: FastifyRequest, reply: FastifyReply) {
    const answer = await ask(request, reply);
    const bounded = new Transform({ transform: atMost(MOST_ANSWERED) });
    pipeline(answer, bounded, () => {}); // an answer that breaks off breaks the connection
    return reply.code(statusOf(answer)).headers(json).send(bounded);
  }

  /** With its last window a session ends. */
  async function closeWindow(request: FastifyRequest, reply: FastifyReply) {
    const answer = await ask(request, reply);
    const value = await valueOf(answer);
    if (Array.isArray(value) && value.length === 0) await webdriver.remove(projectOf(request).id, idOf(request));
    return reply.code(statusOf(answer)).headers(json).send({ value });
  }
}

async function refuseLargeOfStranger(request: FastifyRequest): Promise<void> {
  const { 'content-length': length = 0, 'transfer-encoding': inChunks } = request.headers;
  if (request.caller === null && (inChunks !== undefined || Number(length) > strangersLimit))
    throw errors.payload_too_large({ limit: strangersLimit });
}

const idOf = ({ params }: FastifyRequest) => (params as { id: string }).id;

/** Passes bytes on until there are too many. */
function atMost(most: number): TransformOptions['transform'] {
  let size = 0;
  return (piece: Buffer, _encoding, done) => {
    size += piece.length;
    if (size > most) done(new Error('The answer of the driver is too large.'));
    else done(null, piece);
  };
}

const isWindowClose = ({ method, url }: FastifyRequest) =>
  method === 'DELETE' && /\/session\/[^/]+\/window\/?$/.test(url);

const bytesOf = ({ body }: FastifyRequest): Buffer | undefined => (Buffer.isBuffer(body) ? body : undefined);

const statusOf = ({ statusCode = 500 }: IncomingMessage) =>
  statusCode === 200 || (statusCode >= 400 && statusCode < 600) ? statusCode : 500;

const noKey = () =>
  new WebDriverFault(
    'session not created',
    'The request has no key. Put it into the address (http://corral:KEY@host), or into the capability corral:options as apiKey.',
  );

/** A client that sends no key with its commands has a token in the id instead. */
function idFor({ session_id: id, webdriver_ws_url }: Session, byHeader: boolean): string {
  return byHeader ? id : `${id}.${new URL(webdriver_ws_url).searchParams.get('jwt')}`;
}

/** What the driver says of the browser, with the addresses outside of the session instead of those inside. */
function capabilitiesOf(
  { session, capabilities }: Made,
  { bidi, acceptInsecureCerts }: ReturnType<typeof readCapabilities>,
) {
  const { 'goog:chromeOptions': _, webSocketUrl: __, ...others } = capabilities;
  return {
    ...others,
    acceptInsecureCerts,
    browserName: 'chrome',
    platformName: 'linux',
    // Some clients take it for a websocket only at such a path, which is that of Selenium's own server.
    'se:cdp': session.cdp_ws_url.replace('/browser/cdp?', `/session/${session.session_id}/se/cdp?`),
    'se:cdpVersion': others['browserVersion'],
    ...(bidi ? { webSocketUrl: `${session.webdriver_ws_url}&${beganLike(others)}` } : {}),
    'corral:options': { session_id: session.session_id, browser_live_view_url: session.browser_live_view_url },
  };
}

/** Of dialogs; the standard has six. The driver says them, and setting thousands of parameters takes time that grows quadratically. */
const MOST_KINDS = 10;

/** How the session began, for its BiDi half: dialogs must not be closed there that the client leaves to its commands. */
function beganLike({ unhandledPromptBehavior }: Record<string, unknown>): string {
  const prompts = isObject(unhandledPromptBehavior)
    ? unhandledPromptBehavior
    : { default: unhandledPromptBehavior ?? 'dismiss' };
  const began = new URLSearchParams({ session: 'begun' });
  // `and notify` is about classic commands. BiDi does not have it.
  for (const [kind, what] of Object.entries(prompts).slice(0, MOST_KINDS))
    began.set(
      `prompt.${kind.slice(0, 100)}`,
      String(what)
        .slice(0, 100)
        .replace(/ and notify$/, ''),
    );
  return began.toString();
}

/** Errors in the format of the standard. Other errors are faults of the service, and are answered and logged as everywhere. */
async function answerRefusal(error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
  const creating = request.method === 'POST' && request.routeOptions.url?.endsWith('/session') === true;
  const refusal = refusalOf(inItsWords(error), { creating });
  if (!refusal) throw error;
  if (refusal.status >= 500)
    request.log.warn({ requestId: request.id, error: refusal.body.value.error, cause: error }, 'webdriver.failed');
  return reply
    .code(refusal.status)
    .headers({ ...refusal.headers, ...json })
    .send(refusal.body);
}

function inItsWords(error: FastifyError): Error {
  if (error instanceof Overdue) return new WebDriverFault('timeout', error.message);
  const theirs = error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500;
  return theirs && error.code?.startsWith('FST_') ? new WebDriverFault('invalid argument', error.message) : error;
}
