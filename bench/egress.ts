import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { destinations, parseAllowList } from '../src/chromium/destinations.ts';
import { startGateway } from '../src/chromium/gateway.ts';
import { openPage } from '../test/support/page.ts';
import { median, type Row } from './rows.ts';

const bytes = 100 * 1024 * 1024;
const rounds = 9;

/**
 * 100 MiB through the egress gateway, beside the same without it. The server and the client are processes of their own,
 * as the web and the browser are; the gateway runs here, as it does in the service. Medians of rounds that take turns.
 */
export async function benchEgress(): Promise<Row[]> {
  const web = await start(serverCode);
  const client = await start(clientCode);
  const webPort = Number(await ask(web, {}));
  const server = net.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  const gatewayPort = typeof address === 'object' && address ? address.port : 0;
  const gateway = startGateway(server, { allow: destinations({ allow: parseAllowList(`127.0.0.1:${webPort}`) }) });
  try {
    const rows: Row[] = [];
    for (const [what, how] of [
      ['100 MiB down a tunnel (https, websockets)', 'tunnel'],
      ['100 MiB up a tunnel', 'upload'],
      ['100 MiB down by plain http', 'http'],
    ] as const) {
      const through: number[] = [];
      const without: number[] = [];
      for (let round = -1; round < rounds; round++) {
        const alone = Number(await ask(client, { how, webPort, bytes }));
        const ours = Number(await ask(client, { how, webPort, bytes, gatewayPort }));
        if (round < 0) continue; // the first warms up
        without.push(alone);
        through.push(ours);
      }
      rows.push(row(what, through, without));
    }
    rows.push(await inChromium(webPort, gatewayPort));
    return rows;
  } finally {
    await gateway.close();
    web.kill();
    client.kill();
  }
}

/** The same as the client that counts sees it: a page that fetches 100 MiB. */
async function inChromium(webPort: number, gatewayPort: number): Promise<Row> {
  const direct = await openPage([]);
  const proxied = await openPage([`--proxy-server=http://127.0.0.1:${gatewayPort}`, '--proxy-bypass-list=<-loopback>']);
  try {
    const fetching = `(async () => {
      const start = performance.now();
      const { body } = await fetch('/${bytes}?' + Math.random(), { cache: 'no-store' });
      for await (const _ of body);
      return performance.now() - start;
    })()`;
    const [through, without]: [number[], number[]] = [[], []];
    for (const page of [direct, proxied]) await page.goto(`http://127.0.0.1:${webPort}/1`);
    for (let round = -1; round < rounds; round++) {
      const alone = Number(await direct.evaluate(fetching));
      const ours = Number(await proxied.evaluate(fetching));
      if (round < 0) continue;
      without.push(alone);
      through.push(ours);
    }
    return row('100 MiB fetched by a page', through, without);
  } finally {
    await direct.close();
    await proxied.close();
  }
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
const serverCode = `
  const block = Buffer.alloc(256 * 1024, 'corral');
  const server = require('node:http').createServer((request, response) => {
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
  });
  server.listen(0, '127.0.0.1');
  process.on('message', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
`;

/** Times one transfer, from the first byte of the request to the last of the answer; connecting is not part of it. */
const clientCode = `
  const net = require('node:net');
  const block = Buffer.alloc(256 * 1024, 'corral');
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ how, webPort, bytes, gatewayPort }) => {
    const socket = net.connect({ port: gatewayPort ?? webPort, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve) => socket.once('connect', resolve));
    if (gatewayPort && how !== 'http') {
      socket.write('CONNECT 127.0.0.1:' + webPort + ' HTTP/1.1\\r\\n\\r\\n');
      await new Promise((resolve) => socket.once('data', resolve));
    }
    const start = performance.now();
    const origin = gatewayPort && how === 'http' ? 'http://127.0.0.1:' + webPort : '';
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
