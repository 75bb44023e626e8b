import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { destinations, parseAllowList } from '../src/chromium/egress/destinations.ts';
import { startGateway } from '../src/chromium/egress/gateway.ts';
import { openPage } from '../test/support/page.ts';
import { makeCertificate, provideProxies, startSquid, type RunningProxy } from '../test/support/proxies.ts';
import { startService } from '../test/support/service.ts';
import { median, type Row } from './rows.ts';

const bytes = 100 * 1024 * 1024;
const rounds = 7;
const transfers = [
  ['down a tunnel (https, websockets)', 'tunnel'],
  ['up a tunnel', 'upload'],
  ['down by plain http', 'http'],
] as const;

/**
 * 100 MiB through the egress gateway, beside the same without it: straight, and by way of squid. The server and the client are
 * processes of their own, as the web and the browser are; the gateway runs here, as it does in the service. Medians of
 * rounds that take turns. On two cores, the server, the client and the gateway share the processor.
 */
export async function benchEgress(): Promise<Row[]> {
  const dir = mkdtempSync(join(tmpdir(), 'corral-bench-'));
  makeCertificate(dir, '127.0.0.1');
  const web = await start(serverCode(dir));
  const client = await start(clientCode);
  const ports = (await ask(web, {})) as { plain: number; secure: number };
  const server = net.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const gatewayPort = (server.address() as net.AddressInfo).port;
  const gateway = startGateway(server, { allow: destinations({ allow: parseAllowList('127.0.0.1/32') }) });
  const squid = (await provideProxies())
    ? await startSquid({ exit: '127.0.0.1', connectTo: [ports.plain, ports.secure] })
    : undefined;
  try {
    const rows: Row[] = [];
    for (const by of squid ? [undefined, squid] : [undefined]) {
      const how = by ? ' through squid' : '';
      gateway.setProxy(by && { protocol: 'http', host: by.host, port: by.port, bypassHosts: [] });
      for (const [what, kind] of transfers) {
        const transfer = (proxyPort?: number) => ask(client, { how: kind, webPort: ports.plain, bytes, proxyPort });
        rows.push(
          await compare(`100 MiB ${what}${how}`, {
            without: async () => Number(await transfer(by?.port)),
            through: async () => Number(await transfer(gatewayPort)),
          }),
        );
      }
      for (const scheme of ['https', 'http'] as const)
        rows.push(await inChromium(`100 MiB fetched by a page, ${scheme}${how}`, scheme, ports, gatewayPort, by?.port));
    }
    if (squid) rows.push(...(await benchSwap(squid, ports.plain)));
    return rows;
  } finally {
    await gateway.close();
    await squid?.kill();
    web.kill();
    client.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The same as the client that counts sees it: a page that fetches 100 MiB. */
async function inChromium(
  what: string,
  scheme: 'http' | 'https',
  ports: { plain: number; secure: number },
  gatewayPort: number,
  squidPort?: number,
): Promise<Row> {
  const proxied = (port: number) => [`--proxy-server=http://127.0.0.1:${port}`, '--proxy-bypass-list=<-loopback>'];
  const common = ['--ignore-certificate-errors'];
  const without = await openPage([...common, ...(squidPort ? proxied(squidPort) : [])]);
  const through = await openPage([...common, ...proxied(gatewayPort)]);
  try {
    const fetching = `(async () => {
      const start = performance.now();
      const { body } = await fetch('/${bytes}?' + Math.random(), { cache: 'no-store' });
      for await (const _ of body);
      return performance.now() - start;
    })()`;
    const url = `${scheme}://127.0.0.1:${scheme === 'http' ? ports.plain : ports.secure}/1`;
    for (const page of [without, through]) await page.goto(url);
    return await compare(what, {
      without: async () => Number(await without.evaluate(fetching)),
      through: async () => Number(await through.evaluate(fetching)),
    });
  } finally {
    await without.close();
    await through.close();
  }
}

/** How long a PATCH of the proxy takes, and a page by the new one after it. */
async function benchSwap(squid: RunningProxy, webPort: number): Promise<Row[]> {
  const service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1/32', CORRAL_LOG_LEVEL: 'silent' });
  try {
    const sdk = service.sdk();
    const config = { host: squid.host, port: squid.port };
    const proxy = await sdk.proxies.create({ type: 'custom', protocol: 'http', config });
    const session = await sdk.browsers.create({ headless: true });
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = await browser.newPage();
    const url = `http://127.0.0.1:${webPort}/1`;
    const [swaps, loads, plain]: number[][] = [[], [], []];
    const timed = async (into: number[], work: () => Promise<unknown>) => {
      const started = performance.now();
      await work();
      into.push(performance.now() - started);
    };
    await page.goto(url);
    for (let round = 0; round < 20; round++) {
      await timed(plain!, () => page.goto(url));
      const proxy_id = round % 2 === 0 ? proxy.id! : '';
      await timed(swaps!, () => sdk.browsers.update(session.session_id, { proxy_id }));
      await timed(loads!, () => page.goto(url));
    }
    await browser.close();
    const beside = `the same page without a swap (${median(plain!).toFixed(1)} ms)`;
    const load = median(loads!);
    return [
      {
        what: 'a swap of the proxy (PATCH)',
        value: median(swaps!),
        unit: 'ms',
        beside: 'no restart, no client dropped',
      },
      { what: 'a page after it', value: load, unit: 'ms', beside, ratio: load / median(plain!) },
    ];
  } finally {
    await service.close();
  }
}

async function compare(
  what: string,
  { without, through }: Record<'without' | 'through', () => Promise<number>>,
): Promise<Row> {
  const times: Record<'without' | 'through', number[]> = { without: [], through: [] };
  for (let round = -1; round < rounds; round++) {
    const [alone, ours] = [await without(), await through()];
    if (round < 0) continue; // the first warms up
    times.without.push(alone);
    times.through.push(ours);
  }
  return row(what, times.through, times.without);
}

function row(what: string, through: number[], without: number[]): Row {
  const [value, beside] = [rate(through), rate(without)];
  return {
    what,
    value,
    unit: 'MiB/s',
    beside: `without the gateway (${beside} MiB/s)`,
    ratio: value / beside,
    bar: 'at least 0.80',
  };
}

function rate(milliseconds: number[]): number {
  return Math.round(bytes / 1024 / 1024 / (median(milliseconds) / 1000));
}

async function start(code: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(child, 'spawn');
  return child;
}

async function ask(child: ChildProcess, question: object): Promise<unknown> {
  child.send(question);
  const [answer]: unknown[] = await once(child, 'message');
  return answer;
}

/** Answers `GET /<bytes>` with that many, and any POST with a word once its body is in. */
const serverCode = (dir: string) => `
  const block = Buffer.alloc(256 * 1024, 'corral');
  const { readFileSync } = require('node:fs');
  const answer = (request, response) => {
    if (request.method === 'POST') return request.resume().on('end', () => response.end('thanks'));
    let left = Number.parseInt(request.url.slice(1));
    response.writeHead(200, { 'Content-Length': left });
    const pump = () => {
      while (left > 0) {
        const part = left < block.length ? block.subarray(0, left) : block;
        left -= part.length;
        if (!response.write(part)) return;
      }
      response.end();
    };
    response.on('drain', pump);
    pump();
  };
  const pair = { key: readFileSync('${dir}/key.pem'), cert: readFileSync('${dir}/cert.pem') };
  const plain = require('node:http').createServer(answer).listen(0, '127.0.0.1');
  const secure = require('node:https').createServer(pair, answer).listen(0, '127.0.0.1');
  process.on('message', () => process.send({ plain: plain.address().port, secure: secure.address().port }));
  process.on('disconnect', () => process.exit());
`;

/** Times one transfer, from the first byte of the request to the last of the answer; connecting is not part of it. */
const clientCode = `
  const net = require('node:net');
  const block = Buffer.alloc(256 * 1024, 'corral');
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ how, webPort, bytes, proxyPort }) => {
    const socket = net.connect({ port: proxyPort ?? webPort, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve) => socket.once('connect', resolve));
    if (proxyPort && how !== 'http') {
      socket.write('CONNECT 127.0.0.1:' + webPort + ' HTTP/1.1\\r\\n\\r\\n');
      await new Promise((resolve) => socket.once('data', resolve));
    }
    const start = performance.now();
    const origin = proxyPort && how === 'http' ? 'http://127.0.0.1:' + webPort : '';
    const method = how === 'upload' ? 'POST ' : 'GET ';
    const length = how === 'upload' ? 'Content-Length: ' + bytes + '\\r\\n' : '';
    socket.write(method + origin + '/' + bytes + ' HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n' + length + '\\r\\n');
    if (how === 'upload') {
      let left = bytes;
      const pump = () => {
        while (left > 0) {
          const part = left < block.length ? block.subarray(0, left) : block;
          left -= part.length;
          if (!socket.write(part)) return;
        }
      };
      socket.on('drain', pump);
      pump();
    }
    let received = 0;
    socket.on('data', (chunk) => (received += chunk.length));
    await new Promise((resolve) => socket.once('end', resolve));
    if (received < (how === 'upload' ? 1 : bytes)) throw new Error('only ' + received + ' bytes arrived');
    process.send(performance.now() - start);
    socket.destroy();
  });
`;
