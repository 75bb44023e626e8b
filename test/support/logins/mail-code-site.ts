import { randomInt, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { listenOnLoopback } from '../listen.ts';

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${body}</html>`;
const alert = (text: string) => (text ? `<p role="alert" class="error">${text}</p>` : '');

interface Visitor {
  username: string;
  code: string;
  in: boolean;
}

export type MailCodeSite = Awaited<ReturnType<typeof startMailCodeSite>>;

/** A web site on loopback that sends a code after the password. `send` delivers it. */
export async function startMailCodeSite({
  users,
  send,
  by = 'email',
}: {
  users: Record<string, string>;
  send: (username: string, code: string) => void | Promise<void>;
  by?: 'email' | 'text message';
}) {
  const visitors = new Map<string, Visitor>();
  /** How each form was answered, with the user, in their order. */
  const answered: string[] = [];

  const signIn = (error = '') =>
    page(
      'Sign in to Orchard',
      `${alert(error)}<form method="post" action="/login">
        <label>Email <input name="username" type="email" autocomplete="username" required></label>
        <label>Password <input name="password" type="password" autocomplete="current-password" required></label>
        <button>Sign in</button></form>`,
    );
  const enterCode = (error = '') =>
    page(
      'Enter your code',
      `${alert(error)}<p>We sent a verification code by ${by}.</p><form method="post" action="/code">
        <label>Verification code <input name="code" autocomplete="one-time-code" inputmode="numeric" required></label>
        <button>Verify</button></form>`,
    );
  const account = ({ username }: Visitor) =>
    page('Your account', `<p>Signed in as ${username}</p><a href="/logout">Sign out</a>`);

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const id = /\bvisitor=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
    const visitor = visitors.get(id);
    const html = (text: string, status = 200) =>
      response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(text);
    const moveTo = (location: string, cookie?: string) =>
      response
        .writeHead(303, { location, ...(cookie ? { 'set-cookie': `visitor=${cookie}; HttpOnly; Path=/` } : {}) })
        .end();

    async function post() {
      const form = await formOf(request);
      if (pathname === '/login') {
        const username = form.get('username') ?? '';
        const right = users[username] !== undefined && users[username] === form.get('password');
        answered.push(`${username} ${right ? 'right' : 'wrong'} password`);
        if (!right) return html(signIn('Wrong email or password.'));
        const next = { username, code: String(randomInt(100_000, 1_000_000)), in: false };
        const key = randomUUID();
        visitors.set(key, next);
        await send(username, next.code);
        return moveTo('/code', key);
      }
      if (pathname !== '/code' || !visitor) return moveTo('/login');
      const right = form.get('code') === visitor.code;
      answered.push(`${visitor.username} ${right ? 'right' : 'wrong'} code`);
      if (!right) return html(enterCode('This code is not valid.'));
      visitor.in = true;
      return moveTo('/account');
    }

    if (request.method === 'POST') return void post().catch(() => response.destroy());
    if (pathname === '/favicon.ico') return void html('', 404);
    if (visitor?.in) return void html(account(visitor));
    if (pathname === '/code' && visitor) return void html(enterCode());
    return void (pathname === '/login' ? html(signIn()) : moveTo('/login'));
  });
  const { port, close } = await listenOnLoopback(server);
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    answered,
    /** All visitors are logged out. */
    endSessions: () => visitors.clear(),
    close,
  };
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return new URLSearchParams(text);
}
