import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostedAsset, hostedPage, pageHeaders } from '../../../src/logins/hosted/assets.ts';

export type FlowState = Record<string, unknown>;

const inProgress = {
  id: 'ma_one',
  domain: 'shop.example',
  profile_name: 'alice',
  status: 'NEEDS_AUTH',
  save_credentials: true,
  record_session: false,
  flow_status: 'IN_PROGRESS',
  flow_step: 'DISCOVERING',
  flow_type: 'LOGIN',
};

/** The hosted page under a base path, as behind a proxy, with a flow whose state the test sets. */
export async function serveHostedPage() {
  let state: FlowState = inProgress;
  let codes = new Set(['good']);
  const streams = new Set<ServerResponse>();
  /** Bodies of submits, in order. */
  const submits: unknown[] = [];
  /** What submits are answered with from now on; 0 breaks the connection. */
  const answers = { submit: 202 };
  const expiresAt = new Date(Date.now() + 15 * 60_000).toISOString();

  const frame = () => {
    const event = { event: 'managed_auth_state', timestamp: new Date().toISOString(), ...state };
    return `event: managed_auth_state\ndata: ${JSON.stringify(event)}\n\n`;
  };

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const { pathname } = new URL(request.url ?? '/', 'http://page');
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const name = /^\/base\/auth\/hosted\/assets\/(.+)$/.exec(pathname)?.[1];
    if (name !== undefined) {
      const asset = hostedAsset(name);
      return asset ? response.setHeader('content-type', asset.type).end(asset.body) : json(404, {});
    }
    if (pathname === '/base/auth/hosted/ma_one')
      return response.writeHead(200, { ...pageHeaders, 'content-type': 'text/html' }).end(hostedPage);
    if (pathname === '/base/browser/live' || pathname === '/back')
      return response.setHeader('content-type', 'text/html').end('<title>Elsewhere</title><input aria-label="there">');

    let body = '';
    for await (const chunk of request) body += String(chunk);
    const call = /^\/base\/auth\/connections\/ma_one(\/\w+)?$/.exec(pathname);
    if (!call) return json(404, {});
    if (call[1] === '/exchange')
      return codes.delete((JSON.parse(body) as { code: string }).code)
        ? json(200, { invocation_id: 'flow_one', jwt: 'a.b.c' })
        : json(410, { code: 'handoff_code_gone', message: 'Used.' });
    if (request.headers.authorization !== 'Bearer a.b.c') return json(401, { code: 'unauthorized', message: 'No.' });
    if (call[1] === '/submit') {
      if (answers.submit === 0) return response.destroy();
      if (answers.submit === 202) submits.push(JSON.parse(body));
      return json(answers.submit, { accepted: true, message: 'It does not wait for that.' });
    }
    if (call[1] === '/events') {
      streams.add(response);
      response.on('close', () => streams.delete(response));
      return response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frame());
    }
    return json(200, { ...state, flow_expires_at: expiresAt });
  }

  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    url: `${origin}/base/auth/hosted/ma_one?code=good`,
    submits,
    answers,
    streams,
    /** Begins a new flow, with a code that was not used. */
    begin(next: FlowState = {}) {
      state = { ...inProgress, ...next };
      codes = new Set(['good']);
      submits.length = 0;
      answers.submit = 202;
    },
    /** The flow's state from now on, sent to every page that follows it. */
    tell(next: FlowState) {
      state = { ...inProgress, ...next };
      for (const stream of streams) stream.write(frame());
    },
    /** Breaks every stream, as a network does. */
    breakStreams() {
      for (const stream of streams) stream.destroy();
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export type ServedPage = Awaited<ReturnType<typeof serveHostedPage>>;
