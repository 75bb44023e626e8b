import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { isTargetList } from '../../chromium/cdp/shapes.ts';
import { errors } from '../../errors.ts';
import type { Addresses } from '../addresses.ts';
import { heldSessions } from '../held-routes.ts';
import { liveViewAsset, liveViewCsp, liveViewPage } from '../live-view/assets.ts';
import type { SessionService } from '../service.ts';

const config = { access: 'token' } as const;
const Token = Type.Object({ token: Type.String() });

/**
 * What is served under a session's `base_url`: the discovery paths of Chromium's own HTTP endpoint, for tools that take an http address
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
  return async (app) => {
    app.get('/browser/kernel/:token/json/version', { config, schema: { params: Token } }, (request, reply) =>
      using(request, reply, async ({ held, sessionId, minter }) => {
        const { product, userAgent, jsVersion, protocolVersion, revision } = held.engine.browser.version;
        return {
          Browser: product,
          'Protocol-Version': protocolVersion,
          'User-Agent': userAgent,
          'V8-Version': jsVersion,
          'WebKit-Version': `537.36 (${revision})`,
          webSocketDebuggerUrl: addresses.of(sessionId, minter).cdp_ws_url,
        };
      }),
    );

    for (const path of ['json', 'json/list']) {
      app.get(`/browser/kernel/:token/${path}`, { config, schema: { params: Token } }, (request, reply) =>
        using(request, reply, async ({ held, sessionId, minter }) => {
          const { targetInfos } = await held.engine.control().ask(isTargetList, 'Target.getTargets');
          // One websocket for the whole browser; a client attaches to the target by its id.
          const { cdp_ws_url } = addresses.of(sessionId, minter);
          return targetInfos.map(({ targetId, type, title, url }) => ({
            id: targetId,
            type,
            title,
            url,
            webSocketDebuggerUrl: cdp_ws_url,
          }));
        }),
      );
    }

    const View = Type.Object({ jwt: Type.Optional(Type.String()), readOnly: Type.Boolean({ default: false }) });
    app.get('/browser/live', { config, schema: { querystring: View } }, async (request, reply) => {
      const { sessionId: id, watchOnly } = await addresses.admit(request.query.jwt, 'live');
      const session = sessions.running(id);
      if (!session) throw errors.session_not_found({ session: id });
      void reply.headers({
        'Content-Security-Policy': liveViewCsp,
        'Cache-Control': 'no-store',
        'Referrer-Policy': 'no-referrer',
      });
      const page = liveViewPage({
        kind: session.view,
        socketPath: 'live/socket',
        title: id,
        readOnly: watchOnly || request.query.readOnly,
      });
      return reply.type('text/html; charset=utf-8').send(page);
    });

    app.get(
      '/browser/live/assets/*',
      { config: { access: 'public' }, schema: { params: Type.Object({ '*': Type.String() }) } },
      async (request, reply) => {
        const asset = await liveViewAsset(request.params['*']);
        if (!asset) throw errors.not_found({ detail: 'The live view has no such file.' });
        return reply.type(asset.type).header('Cache-Control', 'no-cache').send(asset.body);
      },
    );
  };
}
