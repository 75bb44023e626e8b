import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { URLSearchParams } from 'node:url';

export type ShopSite = Awaited<ReturnType<typeof startShopSite>>;

/**
 * A web site on loopback as many are made: a login page, an account page that leads there, and a session that rests on a
 * cookie without a date. With `code`, a second page asks for a code that was sent.
 */
export async function startShopSite({
  username,
  password,
  code,
}: {
  username: string;
  password: string;
  code?: string;
}) {
  const sessions = new Set<string>();
  const pending = new Set<string>();
  /** How each login form that was sent was answered. */
  const answered: string[] = [];
  const faults: {
    /** Login forms are answered when this resolves. */
    hold?: Promise<void> | undefined;
    /** Each visit of the account page gets another cookie, and the one before is void. */
    renews?: boolean;
  } = {};

  const server = createServer((request, response) => {
    const { sid = '' } = cookiesOf(request);
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const page = (title: string, body: string, status = 200) =>
      response
        .writeHead(status, { 'content-type': 'text/html; charset=utf-8' })
        .end(`<!doctype html><html lang="en"><title>${title}</title><body><h1>${title}</h1>${body}</body></html>`);
    const redirect = (to: string, cookie?: string) =>
      response.writeHead(303, { location: to, ...(cookie ? { 'set-cookie': cookie } : {}) }).end();
    const loginForm = (error = '') =>
      page(
        'Sign in',
        `${error && `<p role="alert" class="error">${error}</p>`}<form method="post" action="/login">
          <label>Username <input name="user" autocomplete="username"></label>
          <label>Password <input name="pass" type="password" autocomplete="current-password"></label>
          <button>Sign in</button></form>`,
      );
    const codeForm = (error = '') =>
      page(
        'Check your phone',
        `${error && `<p role="alert" class="error">${error}</p>`}<p>We sent a text message with a code.</p>
        <form method="post" action="/code"><label>Verification code
          <input name="otp" autocomplete="one-time-code" maxlength="6"></label>
          <button>Verify</button></form>`,
      );
    const account = () => page('Your account', `<p>Signed in as ${username}</p><a href="/logout">Sign out</a>`);
    const answer = (what: string) => void answered.push(what);

    async function post() {
      const form = await bodyOf(request);
      await faults.hold;
      const id = randomUUID();
      if (pathname === '/login') {
        const right = form.get('user') === username && form.get('pass') === password;
        answer(right ? 'right password' : 'wrong password');
        if (!right) return loginForm('Wrong username or password.');
        (code === undefined ? sessions : pending).add(id);
        return redirect(code === undefined ? '/account' : '/code', `sid=${id}; HttpOnly; Path=/`);
      }
      if (pathname === '/code' && pending.has(sid)) {
        const right = form.get('otp') === code;
        answer(right ? 'right code' : 'wrong code');
        if (!right) return codeForm('That code is not right.');
        pending.delete(sid);
        sessions.add(id);
        return redirect('/account', `sid=${id}; HttpOnly; Path=/`);
      }
      return redirect('/login');
    }

    if (request.method === 'POST') return void post();
    if (pathname === '/login') return void loginForm();
    if (pathname === '/code') return void (pending.has(sid) ? codeForm() : redirect('/login'));
    if (faults.renews && pathname === '/account' && sessions.delete(sid)) {
      const next = randomUUID();
      sessions.add(next);
      response.setHeader('set-cookie', `sid=${next}; HttpOnly; Path=/`);
      return void account();
    }
    if (pathname === '/' || pathname === '/account') return void (sessions.has(sid) ? account() : redirect('/login'));
    return void page('Not found', '', 404);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    answered,
    faults,
    /** Everyone is logged out, as sites do it now and then. */
    endSessions: () => sessions.clear(),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function cookiesOf({ headers }: IncomingMessage): Record<string, string> {
  const pairs = (headers.cookie ?? '').split('; ').map((pair) => pair.split('=', 2));
  return Object.fromEntries(pairs) as Record<string, string>;
}

async function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return new URLSearchParams(text);
}
