import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { protocolDescription } from '../../chromium/cdp/description.ts';
import { isCreated, type TargetInfo } from '../../chromium/cdp/shapes.ts';
import { asJsonVersion } from '../../chromium/guest/devtools.ts';
import { errors, ServiceError } from '../../errors.ts';
import type { Addresses } from '../addresses.ts';
import { heldSessions, type Use } from '../held-routes.ts';
import { liveViewAsset, liveViewCsp, liveViewPage, liveViewRefusal, prepareLiveView } from '../live-view/assets.ts';
import type { SessionService } from '../service.ts';
import { targetsOf } from './targets.ts';

const config = { access: 'token' } as const;
const Token = Type.Object({ token: Type.String() });

type Described = Pick<TargetInfo, 'targetId' | 'type' | 'title' | 'url'>;

/** `/json/new?https://example.com`: the whole query is the address. */
function addressIn(url: string): string {
  const query = url.slice(url.indexOf('?') + 1);
  if (!url.includes('?')) return '';
  try {
    return decodeURIComponent(query);
  } catch {
    throw errors.bad_request({ detail: 'The address behind /json/new? is not encoded as part of a URL.' });
  }
}

/**
 * The routes under a session's `base_url`: the discovery paths of Chromium's own HTTP endpoint, for tools that take an http address
 * instead of a websocket's. Not part of the reference: it is Chromium's interface.
 */
export function browserRoutes({
  sessions,
  addresses,
}: {
  sessions: SessionService;
  addresses: Addresses;
}): FastifyPluginAsyncTypebox {
  const { using } = heldSessions({ sessions, addresses });

  /** Targets as Chromium's endpoint lists them, each with a websocket of its own. The addresses are signed once for all of them. */
  function described(targets: readonly Described[], { sessionId, minter, held }: Use) {
    const base = addresses.of(sessionId, minter).base_url;
    const [scheme, host] = [base.startsWith('https') ? 'wss' : 'ws', base.replace(/^https?:\/\//, '')];
    const revision = held.engine.browser.version.revision.replace(/^@?/, '@');
    return targets.map(({ targetId, type, title, url }) => {
      const at = `${host}/devtools/page/${targetId}`;
      return {
        description: '',
        devtoolsFrontendUrl: `https://chrome-devtools-frontend.appspot.com/serve_rev/${revision}/inspector.html?${scheme}=${at}`,
        id: targetId,
        title,
        type,
        url,
        webSocketDebuggerUrl: `${scheme}://${at}`,
      };
    });
  }

  return async (app) => {
    app.get('/browser/kernel/:token/json/version', { config, schema: { params: Token } }, (request, reply) =>
      using(request, reply, async ({ held, sessionId, minter }) =>
        asJsonVersion(held.engine.browser.version, socketOfBrowser(addresses.of(sessionId, minter), sessionId)),
      ),
    );

    for (const path of ['json', 'json/list']) {
      app.get(`/browser/kernel/:token/${path}`, { config, schema: { params: Token } }, (request, reply) =>
        using(request, reply, async (use) => described(await targetsOf(use.held.engine), use)),
      );
    }

    app.get('/browser/kernel/:token/json/protocol', { config, schema: { params: Token } }, async (request, reply) => {
      await addresses.admit(request.params.token, 'base');
      return reply.type('application/json; charset=UTF-8').send(await protocolDescription());
    });

    app.put('/browser/kernel/:token/json/new', { config, schema: { params: Token } }, (request, reply) =>
      using(request, reply, async (use) => {
        const { engine } = use.held;
        const url = addressIn(request.raw.url ?? '') || 'about:blank';
        const { targetId } = await engine.control().ask(isCreated, 'Target.createTarget', { url });
        const made = (await targetsOf(engine)).find((info) => info.targetId === targetId);
        return described([made ?? { targetId, type: 'page', title: '', url }], use)[0];
      }),
    );
    app.get('/browser/kernel/:token/json/new', { config, schema: { params: Token } }, async (request, reply) => {
      await addresses.admit(request.params.token, 'base');
      const words = 'Using unsafe HTTP verb GET to invoke /json/new. This action supports only PUT verb.';
      return reply.code(405).header('Allow', 'PUT').type('text/plain').send(words);
    });

    const acts = [
      { path: 'activate', method: 'Target.activateTarget', answer: 'Target activated' },
      { path: 'close', method: 'Target.closeTarget', answer: 'Target is closing' },
    ] as const;
    for (const { path, method, answer } of acts)
      app.route({
        method: ['GET', 'PUT'], // Chromium takes both
        url: `/browser/kernel/:token/json/${path}/:targetId`,
        config,
        schema: { params: Type.Object({ token: Type.String(), targetId: Type.String() }) },
        handler: (request, reply) =>
          using(request, reply, async ({ held: { engine } }) => {
            const { targetId } = request.params;
            if (!(await targetsOf(engine)).some((info) => info.targetId === targetId))
              throw errors.not_found({ detail: `No such target id: ${targetId}` });
            await engine.control().send(method, { targetId });
            return reply.type('text/html; charset=UTF-8').send(answer);
          }),
      });

    for (const path of ['', '/*'])
      app.all(`/browser/kernel/:token${path}`, {
        config,
        schema: { params: Token },
        // Before the body is read, for every content type.
        async onRequest(request) {
          await addresses.admit(request.params.token, 'base');
          throw errors.not_found({ detail: 'Nothing is served here, below the address of a session (base_url).' });
        },
        handler: async () => undefined,
      });

    app.addHook('onListen', async () => {
      prepareLiveView().catch((error: unknown) => app.log.error({ error }, 'live_view.not_bundled'));
    });
    const View = Type.Object({ jwt: Type.Optional(Type.String()), readOnly: Type.Optional(Type.String()) });
    const live = { config, schema: { querystring: View }, errorHandler: refuseLink };
    app.get('/browser/live', live, async (request, reply) => {
      const { readOnly = 'false' } = request.query;
      if (readOnly !== 'true' && readOnly !== 'false')
        throw errors.bad_request({ detail: 'readOnly, at the end of the link, takes true or false.' });
      const { sessionId: id, watchOnly } = await addresses.admit(request.query.jwt, 'live');
      const session = sessions.running(id);
      if (!session || session.ending) throw errors.session_not_found({ session: id });
      void reply.headers(pageHeaders);
      const page = await liveViewPage({
        kind: session.view,
        socketPath: 'live/socket',
        title: await sessions.nameOf(id),
        readOnly: watchOnly || readOnly === 'true',
      });
      return reply.send(page);
    });

    app.get(
      '/browser/live/assets/*',
      { config: { access: 'public' }, schema: { params: Type.Object({ '*': Type.String() }) } },
      async (request, reply) => {
        const asset = await liveViewAsset(request.params['*'], request.headers['accept-encoding']);
        if (!asset) throw errors.not_found({ detail: 'The live view has no such file.' });
        return reply.headers(asset.headers).send(asset.body);
      },
    );

    // A link that was mistyped.
    app.get('/browser/*', { config: { access: 'public' }, errorHandler: refuseLink }, async (request) => {
      throw errors.not_found({ detail: `Nothing is served at GET ${request.url.split('?', 1)[0]}.` });
    });
  };
}

const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': liveViewCsp,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
};

/** Browsers that open an invalid link get a page. Errors thrown here are answered in JSON, as everywhere. */
async function refuseLink(error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (!(error instanceof ServiceError) || !request.headers.accept?.includes('text/html')) throw error;
  const { status, code, message, extras } = error;
  const [path = ''] = request.url.split('?', 1);
  const up = '../'.repeat(Math.max(0, path.split('/').length - 3)); // to /browser/
  const page = await liveViewRefusal({ status, code, detail: message }, `${up}live/assets/`);
  return reply
    .code(status)
    .headers({ ...extras.headers, ...pageHeaders })
    .send(page);
}

/**
 * The websocket of the browser, as `/json/version` names it. At a host of the session's own it is at that host: clients that keep host and
 * port only put those of the address that they asked in its place.
 */
function socketOfBrowser({ base_url, cdp_ws_url }: { base_url: string; cdp_ws_url: string }, sessionId: string) {
  const { pathname, origin } = new URL(base_url);
  return pathname === '/' ? `${origin.replace(/^http/, 'ws')}/devtools/browser/${sessionId}` : cdp_ws_url;
}
