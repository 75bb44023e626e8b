import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const person = { username: 'ann', password: 'open sesame', code: '246810' };

/** How far a visitor is, by cookie. */
type Progress = 'new' | 'password known' | 'code sent' | 'in';

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${body}</html>`;
const alert = (text: string) => (text ? `<p role="alert" class="error">${text}</p>` : '');

const signIn = (error = '') =>
  page(
    'Sign in to Orchard',
    `${alert(error)}<form method="post" action="/login">
      <label>Username <input name="username" autocomplete="username" required></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required></label>
      <button>Sign in</button></form>`,
  );
const pickMethod = page(
  'Verify your identity',
  `<p>Choose how to get your verification code.</p><form method="post" action="/method">
    <button name="method" value="sms">Text message to •••• 12</button>
    <button name="method" value="email">Email to a•••@orchard.example</button></form>`,
);
const enterCode = (error = '') =>
  page(
    'Enter your verification code',
    `${alert(error)}<p>We sent a code to your phone.</p><form method="post" action="/code">
      <label>Verification code <input name="code" autocomplete="one-time-code" inputmode="numeric" required></label>
      <button>Verify</button></form>`,
  );
const account = page('Your account', '<p>Welcome back, Ann.</p><a href="/logout">Sign out</a>');

/** A web site on loopback with a password and a second factor that the visitor chooses. */
export async function startTwoFactorSite() {
  const visitors = new Map<string, Progress>();
  /** The posts, in order: the chosen method, and whether a password or a code was right. */
  const posted: string[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const visitor = /\bvisitor=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? randomUUID();
    const send = (html: string) =>
      response.setHeader('set-cookie', `visitor=${visitor}`).setHeader('content-type', 'text/html').end(html);
    const moveTo = (progress: Progress) => {
      visitors.set(visitor, progress);
      response.setHeader('set-cookie', `visitor=${visitor}`).writeHead(303, { location: '/' }).end();
    };

    if (request.method === 'POST') {
      const form = new URLSearchParams(await bodyOf(request));
      if (pathname === '/login') {
        const right = form.get('username') === person.username && form.get('password') === person.password;
        posted.push(right ? 'right password' : 'wrong password');
        return right ? moveTo('password known') : send(signIn('That password is not right. Try again, Ann.'));
      }
      if (pathname === '/method') {
        posted.push(form.get('method') ?? 'no method');
        return moveTo('code sent');
      }
      if (pathname === '/code') {
        const right = form.get('code') === person.code;
        posted.push(right ? 'right code' : 'wrong code');
        return right ? moveTo('in') : send(enterCode('This code is not valid.'));
      }
    }
    if (pathname === '/logout') return moveTo('new');
    if (pathname === '/favicon.ico') return response.writeHead(404).end();
    const pages = { new: signIn(), 'password known': pickMethod, 'code sent': enterCode(), in: account };
    return send(pages[visitors.get(visitor) ?? 'new']);
  }

  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    posted,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

export type TwoFactorSite = Awaited<ReturnType<typeof startTwoFactorSite>>;
