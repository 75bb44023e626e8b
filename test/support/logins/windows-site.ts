import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Secret, TOTP } from 'otpauth';

export type WindowsSite = Awaited<ReturnType<typeof startWindowsSite>>;

interface Registered {
  publicKey: Buffer;
  signCount: number;
}

/**
 * A site on loopback with two ways in that need more than a form: `/key` demands a passkey, which is created after the first password and
 * asked for from then on; `/partner` logs in in a window that does not know which page opened it. Signatures are verified. With `totp`,
 * `/key` asks for a code of this secret after the password.
 */
export async function startWindowsSite({
  username,
  password,
  totp,
}: {
  username: string;
  password: string;
  totp?: string;
}) {
  /** Each cookie that is logged in, each that has given the password and no code, and each that has given both and no passkey. */
  const users = new Set<string>();
  const withoutCode = new Set<string>();
  const pending = new Set<string>();
  const keys = new Map<string, Registered>();
  let challenge = '';
  /** The answers that the site received, in order. */
  const answered: string[] = [];

  const server = createServer((request, response) => {
    const sid = /sid=(\w+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const page = (title: string, body: string) =>
      response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        .end(`<!doctype html><html lang="en"><title>${title}</title><body><h1>${title}</h1>${body}</body></html>`);
    const redirect = (to: string) => response.writeHead(303, { location: to }).end();
    const form = (action: string) =>
      page(
        'Sign in',
        `<form method="post" action="${action}"><label>Username <input name="user" autocomplete="username"></label>
          <label>Password <input name="pass" type="password" autocomplete="current-password"></label><button>Sign in</button></form>`,
      );
    const account = () => page('Your account', `<p>Signed in as ${username}</p><a href="/logout">Sign out</a>`);
    const join = (those: Set<string>) => {
      const id = randomBytes(16).toString('hex');
      those.add(id);
      response.setHeader('set-cookie', `sid=${id}; HttpOnly; Path=/`);
    };

    async function post() {
      const body = await bodyOf(request);
      if (pathname === '/key/create' && pending.has(sid)) {
        const { id, publicKey } = JSON.parse(body) as Record<'id' | 'publicKey', string>;
        answered.push('passkey created');
        keys.set(id, { publicKey: Buffer.from(publicKey, 'base64'), signCount: 0 });
        return void response.end('/key');
      }
      if (pathname === '/key/use') {
        const right = isSigned(JSON.parse(body) as Assertion);
        answered.push(right ? 'passkey used' : 'passkey refused');
        if (right) join(users);
        return void response.end(right ? '/account' : '/key');
      }
      const form = new URLSearchParams(body);
      if (pathname === '/key/code' && totp !== undefined && withoutCode.has(sid)) {
        const token = form.get('code') ?? '';
        const right = new TOTP({ secret: Secret.fromBase32(totp) }).validate({ token, window: 1 }) !== null;
        answered.push(right ? 'right code' : 'wrong code');
        if (right) join(pending);
        return redirect(right ? '/key' : '/key/code');
      }
      const right = form.get('user') === username && form.get('pass') === password;
      answered.push(right ? 'right password' : 'wrong password');
      if (!right) return redirect(pathname);
      if (pathname === '/partner/window') {
        join(users);
        return redirect('/partner/done');
      }
      join(totp === undefined ? pending : withoutCode);
      return redirect(totp === undefined ? '/key' : '/key/code');
    }

    function isSigned({ id, authenticatorData, clientData, signature }: Assertion): boolean {
      const key = keys.get(id);
      const [data, client] = [Buffer.from(authenticatorData, 'base64'), Buffer.from(clientData, 'base64')];
      const signedChallenge = (JSON.parse(client.toString()) as { challenge: string }).challenge;
      const count = data.readUInt32BE(33);
      if (!key || Buffer.from(signedChallenge, 'base64url').toString('hex') !== challenge || count <= key.signCount)
        return false;
      key.signCount = count;
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
      const publicKey = createPublicKey({ key: key.publicKey, format: 'der', type: 'spki' });
      return verify('sha256', signed, publicKey, Buffer.from(signature, 'base64'));
    }

    if (request.method === 'POST') return void post();
    switch (pathname) {
      case '/account':
        return void (users.has(sid) ? account() : redirect('/key'));
      case '/key':
        if (users.has(sid)) return void redirect('/account');
        challenge = randomBytes(32).toString('hex');
        if (pending.has(sid) && keys.size === 0)
          return void page(
            'Create a passkey',
            `<p>Your account needs a passkey.</p><button type="button" id="go">Create a passkey</button>${script(create(challenge))}`,
          );
        return void (keys.size === 0
          ? form('/key')
          : page(
              'Sign in',
              `<p>Use your passkey to sign in.</p><button type="button" id="go">Sign in with a passkey</button>${script(use(challenge))}`,
            ));
      case '/key/code':
        return void page(
          'Enter your code',
          `<p>Open your authenticator app and enter its code.</p><form method="post" action="/key/code">
            <label>Authentication code <input name="code" autocomplete="one-time-code" inputmode="numeric"></label>
            <button>Verify</button></form>`,
        );
      case '/partner':
        if (users.has(sid)) return void redirect('/account');
        return void page(
          'Sign in',
          `<a href="/partner/window" target="_blank" rel="noopener">Sign in with Partner ID</a>
          <script>setInterval(async () => (await (await fetch('/partner/state')).text()) === 'in' && (location = '/account'), 500)</script>`,
        );
      case '/partner/state':
        return void response.end(users.has(sid) ? 'in' : 'out');
      case '/partner/window':
        return void form('/partner/window');
      case '/partner/done':
        return void page('Thank you', '<p>You can close this window now.</p>');
      default:
        return void response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    /** By its name: an IP address can have no passkeys. */
    host: `localhost:${port}`,
    url: `http://localhost:${port}`,
    answered,
    endSessions: () => users.clear(),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Assertion {
  id: string;
  authenticatorData: string;
  clientData: string;
  signature: string;
}

const script = (work: string) => `<p role="alert"></p><script>
  const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
  const post = async (path, body) => (location = await (await fetch(path, { method: 'POST', body: JSON.stringify(body) })).text());
  document.getElementById('go').onclick = async () => {
    try { ${work} } catch { document.querySelector('[role=alert]').textContent = 'No passkey was given.'; }
  };
</script>`;

const create = (challenge: string) => `const made = await navigator.credentials.create({ publicKey: {
  challenge: bytes('${challenge}'), rp: { name: 'Site' }, user: { id: new Uint8Array([7]), name: 'ann', displayName: 'Ann' },
  pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
  authenticatorSelection: { residentKey: 'required', userVerification: 'required' } } });
  await post('/key/create', { id: made.id, publicKey: text(made.response.getPublicKey()) });`;

const use = (challenge: string) => `const { id, response } = await navigator.credentials.get({ publicKey: {
  challenge: bytes('${challenge}'), userVerification: 'required' } });
  await post('/key/use', { id, authenticatorData: text(response.authenticatorData), clientData: text(response.clientDataJSON),
    signature: text(response.signature) });`;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}
