import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** Ways in which a store fails. */
export type Fault = 'silent' | 'sealed' | 'html' | 'shapeless' | 'huge' | 'elsewhere' | 'cut';

type Answer = { status: number; body: unknown } | undefined;

/** A store on loopback that answers GET requests, counts them, and fails as a test wants. */
async function startStore(answer: (path: string, query: URLSearchParams, headers: http.IncomingHttpHeaders) => Answer) {
  const state: { fault: Fault | undefined; requests: string[] } = { fault: undefined, requests: [] };
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://store');
    state.requests.push(pathname);
    const send = (status: number, body: string, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);
    switch (state.fault) {
      case undefined:
        break;
      case 'silent':
        return;
      case 'cut':
        response.writeHead(200, { 'Content-Length': '100' }).write('{');
        setImmediate(() => response.destroy());
        return;
      case 'sealed':
        return send(503, '{"errors":["Vault is sealed"]}');
      case 'html':
        return send(200, '<html>');
      case 'shapeless':
        return send(200, '{"data":5,"vaults":5,"items":5}');
      case 'huge':
        return send(200, `"${'x'.repeat(9 * 1024 * 1024)}"`);
      case 'elsewhere':
        return send(307, '', { Location: 'http://127.0.0.1:1/' });
    }
    const { status, body } = answer(decodeURI(pathname), searchParams, request.headers) ?? {
      status: 404,
      body: { errors: [] },
    };
    send(status, JSON.stringify(body));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}`,
    state,
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

export type Store = Awaited<ReturnType<typeof startStore>>;

export interface Entry {
  vault: string;
  title: string;
  urls?: string[];
  username?: string;
  password?: string;
  otp?: string;
  /** Further fields, by their labels. */
  others?: Record<string, string>;
}

const found = (body: unknown): Answer => ({ status: 200, body });
const bearer = (headers: http.IncomingHttpHeaders) => headers.authorization?.replace('Bearer ', '');

/** A Connect server, after the REST API's description: vaults, items without fields, and one item with them. */
export function startConnect(token: string, entries: Entry[]) {
  const vaults = [...new Set(entries.map(({ vault }) => vault))];
  const overview = (entry: Entry) => ({
    id: `item${entries.indexOf(entry)}`,
    title: entry.title,
    vault: { id: `vault${vaults.indexOf(entry.vault)}`, name: entry.vault },
    category: 'LOGIN',
    ...(entry.urls ? { urls: entry.urls.map((href, i) => ({ label: 'website', primary: i === 0, href })) } : {}),
    version: 1,
  });
  const fields = ({ username, password, otp, others = {} }: Entry) => [
    { id: 'username', type: 'STRING', purpose: 'USERNAME', label: 'username', value: username },
    { id: 'password', type: 'CONCEALED', purpose: 'PASSWORD', label: 'password', value: password },
    { id: 'notesPlain', type: 'STRING', purpose: 'NOTES', label: 'notesPlain', value: 'a note' },
    { id: 'x1', type: 'STRING', label: 'Account Number', value: '4711', section: { id: 's' } },
    { id: 'x2', type: 'STRING', label: 'empty' },
    ...Object.entries(others).map(([label, value]) => ({ id: label, type: 'CONCEALED', label, value })),
    ...(otp ? [{ id: 'TOTP_1', type: 'OTP', label: 'one-time password', value: otp, totp: '123456' }] : []),
  ];
  return startStore((path, _, headers) => {
    if (bearer(headers) !== token)
      return { status: 401, body: { status: 401, message: `Invalid token ${bearer(headers)}` } };
    if (path === '/v1/vaults') return found(vaults.map((name, i) => ({ id: `vault${i}`, name, items: 1 })));
    const [, vault, item] = /^\/v1\/vaults\/vault(\d+)\/items(?:\/item(\d+))?$/.exec(path) ?? [];
    if (vault === undefined) return undefined;
    const inVault = entries.filter((entry) => entry.vault === vaults[Number(vault)]);
    if (item === undefined)
      return found([
        ...inVault.map(overview),
        { id: 'note', title: 'A note', vault: { id: 'vault0' }, category: 'SECURE_NOTE' },
      ]);
    const entry = entries[Number(item)];
    return entry && found({ ...overview(entry), fields: fields(entry) });
  });
}

/** The KV engine of Vault, after its API documentation: mounts, lists, metadata, data. Other engines are beside it. */
export function startVault(
  token: string,
  secrets: Record<string, { data: Record<string, unknown>; custom?: Record<string, string>; deleted?: boolean }>,
  { mount = 'secret', namespace }: { mount?: string; namespace?: string } = {},
) {
  return startStore((path, query, headers) => {
    const denied = { status: 403, body: { errors: ['permission denied'] } };
    if (headers['x-vault-token'] !== token || headers['x-vault-namespace'] !== namespace) return denied;
    if (path === '/v1/auth/token/lookup-self') return found({ data: { policies: ['default'] } });
    if (path === '/v1/sys/internal/ui/mounts')
      return found({
        data: {
          auth: { 'token/': { type: 'token', options: null } },
          secret: {
            [`${mount}/`]: { type: 'kv', options: { version: '2' }, description: '' },
            'old/': { type: 'kv', options: { version: '1' } },
            'cubbyhole/': { type: 'cubbyhole', options: null },
          },
        },
      });
    const prefix = (kind: string) => `/v1/${mount}/${kind}/`;
    if (path.startsWith(prefix('metadata')) && query.get('list') === 'true') {
      const folder = path.slice(prefix('metadata').length);
      const below = Object.keys(secrets).filter((name) => name.startsWith(folder));
      const keys = [...new Set(below.map((name) => name.slice(folder.length).replace(/\/.*/, '/')))];
      return keys.length === 0 ? undefined : found({ data: { keys } });
    }
    if (path.startsWith(prefix('metadata'))) {
      const secret = secrets[path.slice(prefix('metadata').length)];
      return secret && found({ data: { current_version: 1, custom_metadata: secret.custom ?? null, versions: {} } });
    }
    const secret = path.startsWith(prefix('data')) ? secrets[path.slice(prefix('data').length)] : undefined;
    if (secret?.deleted) return { status: 404, body: { data: { data: null, metadata: { version: 1 } } } };
    return secret && found({ data: { data: secret.data, metadata: { version: 1 } } });
  });
}

/** A store that speaks the three calls of docs/credentials.md. */
export function startOwnStore(token: string, entries: (Entry & { id: string })[]) {
  return startStore((path, _, headers) => {
    if (bearer(headers) !== token) return { status: 401, body: {} };
    if (path === '/vaults') return found({ vaults: [{ id: 'v', name: 'Own' }] });
    if (path === '/items')
      return found({
        items: entries.map(({ id, title, vault, urls }) => ({ id, title, vault_name: vault, vault_id: 'v', urls })),
      });
    const entry = entries.find(({ id }) => path === `/items/${id}`);
    const { username = '', password = '', otp, others } = entry ?? {};
    return entry && found({ values: { username, password, ...others }, ...(otp ? { totp_secret: otp } : {}) });
  });
}
