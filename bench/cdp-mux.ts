import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { multiplex } from '../src/chromium/cdp/mux.ts';
import { openPipe } from '../src/chromium/cdp/pipe.ts';
import { onBehalfOf, ownEvents } from '../src/lib/scope.ts';
import { serveWebSocket } from '../src/lib/ws-sink.ts';
import { portOf } from '../test/support/mux-server.ts';
import { rawChromium } from '../test/support/raw-chromium.ts';
import { Page } from './page.ts';
import { median, type Row } from './rows.ts';

const MIB = 1024 * 1024;

/** The measurements: one slice each on raw Chromium and on the service, in turns, so that other load affects both. */
const measures = [
  {
    what: 'CDP round trips, one after another',
    bar: 0.9,
    slices: 24,
    async slice(page: Page) {
      for (let i = 0; i < 200; i++) await page.evaluate('1+1');
      return 200;
    },
  },
  {
    what: 'CDP round trips, 64 in flight',
    bar: 0.95,
    slices: 16,
    async slice(page: Page) {
      let left = 1000;
      const worker = async () => {
        while (left-- > 0) await page.evaluate('1+1');
      };
      await Promise.all(Array.from({ length: 64 }, worker));
      return 1000;
    },
  },
  {
    what: 'CDP answers of 1 MiB',
    bar: 0.95,
    slices: 16,
    async slice(page: Page) {
      for (let i = 0; i < 10; i++) await page.evaluate(`"x".repeat(${MIB})`);
      return 10;
    },
  },
  {
    what: 'CDP commands of 1 MiB',
    bar: 0.95,
    slices: 16,
    async slice(page: Page) {
      for (let i = 0; i < 10; i++) await page.evaluate(large);
      return 10;
    },
  },
];
const large = `1+1//${'x'.repeat(MIB)}`;

/** Rates over the multiplexer beside raw Chromium's. Client, service and browsers are processes of their own. */
export async function benchCdp(): Promise<Row[]> {
  const raw = await rawChromium('port');
  const service = fork(fileURLToPath(import.meta.url), ['service']);
  try {
    const [ours]: string[] = await once(service, 'message');
    if (ours === undefined) throw new Error('The service gave no address.');
    const client = fork(fileURLToPath(import.meta.url), ['client', raw.endpoint, ours]);
    const [rows]: (Row[] | number)[] = await Promise.race([once(client, 'message'), once(client, 'exit')]);
    if (!Array.isArray(rows)) throw new Error('The client ended without a result.');
    return rows;
  } finally {
    await stopped(service);
    await raw.stop();
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
}

/** A part of the service: a websocket server, the multiplexer, and a Chromium on a pipe. */
async function service(): Promise<void> {
  const chromium = await rawChromium('pipe');
  const mux = multiplex(openPipe(chromium.toBrowser, chromium.fromBrowser));
  const server = createServer();
  const owner = { kind: 'session', id: 'bench', end() {} } as const;
  server.on('upgrade', (request, socket, head) =>
    onBehalfOf(owner, () => serveWebSocket({ request, socket: ownEvents(socket), head }, (sink) => mux.attach(sink))),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send!(`ws://127.0.0.1:${portOf(server)}/`);
  await once(process, 'disconnect');
  mux.close(1001, 'done');
  await chromium.stop();
  process.exit();
}

async function client(rawEndpoint: string, ourEndpoint: string): Promise<void> {
  const raw = await Page.open(rawEndpoint);
  const ours = await Page.open(ourEndpoint);
  const only = process.env['CDP_BENCH_ONLY'];
  const rows: Row[] = [];
  for (const measure of measures) {
    const { what, bar, slices } = measure;
    if (only && !what.includes(only)) continue;
    const rates: Record<'raw' | 'ours', number[]> = { raw: [], ours: [] };
    for (let turn = 0; turn < slices + 4; turn++) {
      for (const [name, page] of turn % 2
        ? ([
            ['raw', raw],
            ['ours', ours],
          ] as const)
        : ([
            ['ours', ours],
            ['raw', raw],
          ] as const)) {
        const start = performance.now();
        const count = await measure.slice(page);
        if (turn >= 4) rates[name].push((count * 1000) / (performance.now() - start));
      }
    }
    const value = median(rates.ours);
    const beside = median(rates.raw);
    rows.push({
      what,
      value,
      unit: '/s',
      beside: `raw Chromium (${beside.toFixed(0)}/s)`,
      ratio: value / beside,
      bar: `at least ${bar.toFixed(2)}`,
    });
  }
  process.send!(rows);
  raw.close();
  ours.close();
  process.disconnect();
}

const [, , role, ...args] = process.argv;
if (role === 'service') await service();
else if (role === 'client') await client(args[0]!, args[1]!);
