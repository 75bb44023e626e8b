import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { constants } from 'node:os';
import type { Channel } from '../channel.ts';
import type { Args } from '../protocol.ts';
import { Fault } from './fault.ts';
import { relay } from './relay.ts';
import type { Telling } from './answer-stream.ts';
import { killTree, signalTree } from './tree.ts';

export const driverAsks = { driver, dial };

/** A chromedriver has one connection for requests and one websocket. The service closes the channel when there are many more. */
const MOST_CONNECTIONS = 4;
const START_MS = 30_000;
const LOOPBACK = '127.0.0.1';

/**
 * Runs a chromedriver beside the browser. It knows Chromium by the address of a debugging port only, and Chromium has none: what connects
 * to the port that it is given is passed on to the service, which answers as Chromium would. Both ports are on the session's own loopback
 * device, which its pages do not reach: they go by the gateway.
 */
async function driver({ program }: Args<'driver'>, stream: Telling<'driver'>, service: Channel): Promise<void> {
  const listener = net.createServer((socket) => void relay(socket, service.open('devtools')));
  listener.maxConnections = MOST_CONNECTIONS;
  listener.listen(0, LOOPBACK);
  await once(listener, 'listening');
  const child = spawn(program, ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const exited = new Promise<number>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
  // At once, since the guest may exit right after its channel has closed.
  const end = () => child.pid !== undefined && void signalTree(child.pid, 'SIGKILL');
  stream.gone.addEventListener('abort', end, { once: true });
  if (stream.gone.aborted) end();
  try {
    const port = await portOf(child, exited);
    const { port: debugger_port } = listener.address() as net.AddressInfo;
    await stream.json({ pid: child.pid!, port, debugger_port });
    await stream.json({ exit_code: await exited });
  } finally {
    listener.close();
    if (child.pid !== undefined) await killTree(child.pid);
  }
}

/** The port it has chosen, which it prints once it listens. */
async function portOf(child: ChildProcess, exited: Promise<number>): Promise<number> {
  let printed = '';
  let timer: NodeJS.Timeout | undefined;
  const port = new Promise<number>((resolve, reject) => {
    timer = setTimeout(() => reject(new Fault('not_started', 'chromedriver did not listen in time.')), START_MS);
    void exited.then((code) => reject(new Fault('not_started', `chromedriver ended with exit code ${code}.`)));
    child.stdout?.on('data', (bytes: Buffer) => {
      printed = (printed + bytes.toString('latin1')).slice(-4096);
      const [, given] = /started successfully on port (\d+)/.exec(printed) ?? [];
      if (given !== undefined) resolve(Number(given));
    });
  });
  return port.finally(() => clearTimeout(timer));
}

async function dial({ port }: Args<'dial'>, stream: Telling<'dial'>): Promise<void> {
  const socket = net.connect(port, LOOPBACK);
  const giveUp = () => socket.destroy();
  stream.gone.addEventListener('abort', giveUp, { once: true });
  await once(socket, 'connect');
  await relay(socket, stream);
}
