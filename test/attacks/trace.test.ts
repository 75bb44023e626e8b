import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

const PASSWORD = 'the-proxy-password';

/** A proxy that does what RFC 9110, 9.3.8 says of TRACE: it shows the request as it came. */
const heard: string[] = [];
const proxy = createServer((request, response) => {
  const lines = [`${request.method} ${request.url}`];
  for (let at = 0; at < request.rawHeaders.length; at += 2)
    lines.push(`${request.rawHeaders[at]}: ${request.rawHeaders[at + 1]}`);
  heard.push(lines.join('\n'));
  response.writeHead(200, { 'content-type': 'message/http', connection: 'close' }).end(lines.join('\n'));
});

let service: Service;
let id: string;
beforeAll(async () => {
  await listenOnLoopback(proxy);
  const { port } = proxy.address() as AddressInfo;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}` });
  const config = { host: '127.0.0.1', port, username: 'user', password: PASSWORD };
  const made = await service.call('POST', '/proxies', {
    type: 'custom',
    name: 'reflecting',
    protocol: 'http',
    config,
  });
  if (made.status >= 300) throw new Error(`The proxy was not made: ${made.text}`);
  const created = await service.call('POST', '/browsers', { headless: true, proxy_id: made.body.id });
  id = created.body.session_id as string;
});
afterAll(async () => {
  await service?.close();
  proxy.close();
});

/** Raw bytes to the session's gateway, from a process of the session. */
async function toGateway(request: string) {
  const script = `
    gateway=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | sed -n 's/^--proxy-server=//p' | head -1)
    gateway=\${gateway#*://}
    exec 3<>/dev/tcp/\${gateway%:*}/\${gateway##*:}
    printf '%b' "$1" >&3
    cat <&3`;
  const { stdout_b64, stderr_b64 } = await service
    .sdk()
    .browsers.process.exec(id, { command: 'bash', args: ['-c', script, 'attack', request], timeout_sec: 20 });
  return [stdout_b64, stderr_b64].map((part) => Buffer.from(part ?? '', 'base64').toString()).join('');
}
const lines = (method: string, more = '') =>
  `${method} http://shop.example/ HTTP/1.1\\r\\nHost: shop.example\\r\\n${more}Connection: close\\r\\n\\r\\n`;

test('an ordinary request goes by the proxy, with its password', async () => {
  const answer = await toGateway(lines('GET'));
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(heard.at(-1)).toContain(`Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`);
});

test.each([
  ['TRACE', ''],
  ['TRACE', 'Max-Forwards: 0\\r\\n'],
  ['TRACE', 'Upgrade: websocket\\r\\nConnection: Upgrade\\r\\n'],
  ['TRACK', ''],
])('%s (%s) reaches no proxy, and shows no password', async (method, more) => {
  const before = heard.length;
  const answer = await toGateway(lines(method, more));
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).not.toMatch(/Proxy-Authorization: Basic/i);
  expect(heard.slice(before)).toEqual([]);
});
