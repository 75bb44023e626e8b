/** A relying party and an OpenID provider (oidc-provider from npm) with its own login and consent pages, in one process. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const { OIDC, SITE, PROVIDER } = process.env;
const account = JSON.parse(process.env.ACCOUNT);
const { default: Provider } = await import(pathToFileURL(OIDC).href);
const [site, issuer] = [`http://${SITE}`, `http://${PROVIDER}`];
const client = { client_id: 'forum', client_secret: 'forum-secret', redirect_uris: [`${site}/callback`] };

const provider = new Provider(issuer, {
  clients: [client],
  cookies: { keys: [randomBytes(16).toString('hex')] },
  claims: { openid: ['sub'], email: ['email'] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: id }) }),
  pkce: { required: () => false },
});

const page = (body) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Example ID</title></head><body><h1>Example ID</h1>${body}</body></html>`;

provider.use(async (context, next) => {
  if (!context.path.startsWith('/interaction/')) return next();
  const { prompt, params, session } = await provider.interactionDetails(context.req, context.res);
  const form = context.method === 'POST' ? await readForm(context.req) : undefined;
  if (prompt.name === 'login') {
    if (form && form.get('login') === account.username && form.get('password') === account.password) {
      const result = { login: { accountId: account.username, remember: true } };
      context.respond = false;
      return provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: false });
    }
    const error = form ? '<p class="error">Unknown user or wrong password.</p>' : '';
    context.body = page(`<h2>Sign in to ${params.client_id}</h2>${error}<form method="post">
      <input name="login" placeholder="Enter your login" autocomplete="username"><input type="password" name="password" placeholder="and password">
      <button>Sign-in</button></form><a href="${issuer}/abort">Cancel</a>`);
    return;
  }
  if (form) {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope('openid email');
    const result = { consent: { grantId: await grant.save() } };
    context.respond = false;
    return provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: true });
  }
  context.body = page(`<h2>Authorize</h2><p>${params.client_id} wants to see your email address.</p>
    <form method="post"><button>Continue</button></form><a href="${issuer}/abort">Cancel</a>`);
});

const users = new Map();
const states = new Set();

const forum = createServer(async (request, response) => {
  const url = new URL(request.url, site);
  const redirect = (to, headers = {}) => response.writeHead(303, { location: to, ...headers }).end();
  const sid = /(?:^|; )forum=(\w+)/.exec(request.headers.cookie ?? '')?.[1];
  const user = users.get(sid);
  if (url.pathname === '/login') {
    const state = randomBytes(8).toString('hex');
    states.add(state);
    const query = { client_id: client.client_id, response_type: 'code', scope: 'openid email', state };
    return redirect(`${issuer}/auth?${new URLSearchParams({ ...query, redirect_uri: client.redirect_uris[0] })}`);
  }
  if (url.pathname === '/callback' && states.delete(url.searchParams.get('state'))) {
    const basic = Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64');
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code: url.searchParams.get('code') ?? '',
      redirect_uri: client.redirect_uris[0],
    });
    const tokens = await (
      await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization: `Basic ${basic}` }, body })
    ).json();
    const me = await fetch(`${issuer}/me`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    if (!me.ok) return response.writeHead(502).end('The provider refused.');
    const id = randomBytes(16).toString('hex');
    users.set(id, (await me.json()).email);
    return redirect('/', { 'set-cookie': `forum=${id}; Path=/; HttpOnly; SameSite=Lax` });
  }
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(
    `<!doctype html><html lang="en"><title>Forum</title><h1>Forum</h1>${
      user
        ? `<p id="me">${user}</p><p>3 new posts</p><a href="/logout">Log out</a>`
        : '<p>Members only.</p><a class="button" href="/login">Log in with Example ID</a>'
    }`,
  );
});

async function readForm(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return new URLSearchParams(text);
}

const at = (address) => [Number(address.split(':')[1]), address.split(':')[0]];
forum.listen(...at(SITE));
provider.listen(...at(PROVIDER));
