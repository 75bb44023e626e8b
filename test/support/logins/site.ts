import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Secret, TOTP } from 'otpauth';

/** A web site with a login, as data: what it serves, which account it knows, and how a connection to it should end. */
export interface LoginCase {
  name: string;
  language: string;
  /** The special property of this site. */
  about: string;
  /** Where a connection begins: `/` by default. */
  entry?: string;
  /** A page that only a user sees in full: `/` by default. */
  home?: string;
  account: Account;
  /** The values of the credential: username and password of the account by default. */
  values?: Record<string, string>;
  /** The session cookie: its name, and its age in seconds. Without an age it is undated. */
  cookie?: { name: string; maxAge?: number };
  ends: 'logged in' | Refusal;
  /** What a person or another program does, for a site that asks for more than a credential has. */
  meanwhile?: Meanwhile;
  /** It has a second address, which is another site to a browser; with `allowed`, the connection allows it. */
  second?: 'allowed' | 'not allowed';
  /** Nothing of the login is stored by a browser (HTTP Basic), so a later session has to log in again. */
  notStored?: true;
  /** The site accepts any password, so wrong passwords are not measured. */
  anyPassword?: true;
  serve(visit: Visit, site: Site): void | Promise<void>;
}

export interface Account {
  username: string;
  password: string;
  totp?: string;
}

/** The error codes that are right, and a step that is as right as they are: to wait for a person. */
export interface Refusal {
  codes: string[];
  orWaits?: 'AWAITING_EXTERNAL_ACTION' | 'AWAITING_INPUT';
}

export interface Meanwhile {
  step: 'AWAITING_INPUT' | 'AWAITING_EXTERNAL_ACTION';
  /** A code that the site sent. */
  code?(site: Site): string | undefined;
  /** The choice whose label this matches. */
  choice?: RegExp;
  /** What happens outside of the browser, such as a click on a link in a mail. */
  outside?(site: Site): void;
  /** The service may do without it. */
  optional?: true;
}

/** What the server knows of one browser. */
export interface State {
  user?: string;
  /** Who was named on a page before the password. */
  who?: string;
  [fact: string]: unknown;
}

export interface Visit {
  method: string;
  path: string;
  query: URLSearchParams;
  /** The fields of the body, sent as a form or as JSON. */
  form: Record<string, string>;
  request: IncomingMessage;
  response: ServerResponse;
  state: State;
  html(body: string, options?: { status?: number; title?: string; head?: string; lang?: string }): void;
  json(data: unknown, status?: number): void;
  text(body: string, type: string, status?: number): void;
  redirect(to: string): void;
  /** The browser belongs to the account from here on, under a new session id as sites do against fixation. */
  logIn(options?: { sameId?: boolean }): void;
  /** Logs in and shows the page at an address. */
  enter(to: string, options?: { sameId?: boolean }): void;
  /** Remembers that a step was taken and shows the next. */
  goOn(fact: string, to: string): void;
  /** A page, or an answer of an API, that only a user gets. */
  inside(body: string, options?: { title?: string }): void;
}

/** A case while it runs. */
export class Site {
  readonly about: LoginCase;
  /** How often a user got something that only a user gets. */
  seen = 0;
  /** How often a password was submitted. */
  submits = 0;
  /** The last code that was sent out. */
  sent: string | undefined;
  readonly states = new Map<string, State>();
  #counters = new Set<number>();
  host = '';
  url = '';
  /** The second address, for cases that have one. */
  other = '';

  constructor(about: LoginCase) {
    this.about = about;
  }

  get account(): Account {
    return this.about.account;
  }

  knows(username: string | undefined, password: string | undefined): boolean {
    this.submits++;
    return username?.trim().toLowerCase() === this.account.username.toLowerCase() && password === this.account.password;
  }

  /** A code is good once, as RFC 6238 asks for. */
  takes(code: string | undefined): boolean {
    const secret = Secret.fromBase32(this.account.totp ?? '');
    const delta = new TOTP({ secret }).validate({ token: (code ?? '').replaceAll(/\s/g, ''), window: 1 });
    if (delta === null) return false;
    const counter = Math.floor(Date.now() / 30_000) + delta;
    if (this.#counters.has(counter)) return false;
    this.#counters.add(counter);
    return true;
  }

  send(): string {
    this.sent = String(100_000 + (randomBytes(4).readUInt32BE() % 900_000));
    return this.sent;
  }

  /** Every browser is logged out at once, as after a deployment or a purge. */
  endSessions(): void {
    this.states.clear();
  }
}

export interface RunningSite extends Site {
  close(): Promise<void>;
}

/** Serves a case on loopback. */
export async function startSite(about: LoginCase): Promise<RunningSite> {
  const site = new Site(about);
  const sockets = new Set<Socket>();
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    void answer(site, request, response).catch((error: Error) => {
      if (!response.headersSent) response.statusCode = 500;
      response.end(error.stack);
    });
  };
  const servers: Server[] = [];
  const listen = async (address: string) => {
    const server = createServer(serve);
    servers.push(server);
    server.on('connection', (socket) => void sockets.add(socket.on('close', () => sockets.delete(socket))));
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    return `${address}:${(server.address() as AddressInfo).port}`;
  };
  site.host = await listen('127.0.0.1');
  site.url = `http://${site.host}`;
  if (about.second) site.other = `http://${await listen('127.0.0.2')}`;
  return Object.assign(site, {
    close: async () => {
      for (const socket of sockets) socket.destroy();
      for (const server of servers) await new Promise((resolve) => server.close(resolve));
    },
  });
}

async function answer(site: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', site.url);
  const form = await readBody(request);
  const cookie = site.about.cookie ?? { name: 'sid' };
  let id = cookiesOf(request)[cookie.name];
  let state = id ? site.states.get(id) : undefined;
  const setCookie = (value: string) => {
    const age = cookie.maxAge ? `; Max-Age=${cookie.maxAge}` : '';
    response.setHeader('set-cookie', `${cookie.name}=${value}; Path=/; HttpOnly; SameSite=Lax${age}`);
  };
  if (!state) {
    id = randomBytes(16).toString('hex');
    state = {};
    site.states.set(id, state);
    setCookie(id);
  }
  response.setHeader('cache-control', 'no-store');
  const visit: Visit = {
    method: request.method ?? 'GET',
    path: pathname,
    query: searchParams,
    form,
    request,
    response,
    state,
    html(body, { status = 200, title = site.about.name, head = '', lang = site.about.language } = {}) {
      const page = `<!doctype html><html lang="${lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>${head}</head><body>${body}</body></html>`;
      this.text(page, 'text/html; charset=utf-8', status);
    },
    json(data, status = 200) {
      this.text(JSON.stringify(data), 'application/json', status);
    },
    text(body, type, status = 200) {
      response.statusCode = status;
      response.setHeader('content-type', type);
      response.end(body);
    },
    redirect(to) {
      response.statusCode = 303;
      response.setHeader('location', to);
      response.end();
    },
    logIn({ sameId = false } = {}) {
      state.user = site.account.username;
      if (sameId) return;
      site.states.delete(id!);
      id = randomBytes(16).toString('hex');
      site.states.set(id, state);
      setCookie(id);
    },
    enter(to, options = {}) {
      this.logIn(options);
      this.redirect(to);
    },
    goOn(fact, to) {
      state[fact] = true;
      this.redirect(to);
    },
    inside(body, options = {}) {
      site.seen++;
      this.html(body, options);
    },
  };
  await site.about.serve(visit, site);
  if (!response.writableEnded) visit.html('<h1>404</h1>', { status: 404, title: '404' });
}

async function readBody(request: IncomingMessage): Promise<Record<string, string>> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  if (text === '') return {};
  if (request.headers['content-type']?.includes('json')) return JSON.parse(text) as Record<string, string>;
  return Object.fromEntries(new URLSearchParams(text));
}

function cookiesOf(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    (request.headers.cookie ?? '')
      .split('; ')
      .map((pair) => [pair.split('=', 1)[0]!, pair.slice(pair.indexOf('=') + 1)]),
  );
}

/** What a user gets in every case: a name, a way out, and something to do. */
export const insidePage = (hello: string, logout: string, rest = '') =>
  `<header><nav><a href="/">◆</a> <a href="/settings">⚙</a> <form method="post" action="/logout" style="display:inline"><button>${logout}</button></form></nav></header><main><h1>${hello}</h1>${rest}</main>`;
