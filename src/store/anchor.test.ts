import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import { openAnchor, type Anchor } from './anchor.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';

let dir: string;
let postgres: EmbeddedPostgres;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'corral-anchor-'));
  postgres = await startEmbeddedPostgres({ dataDir: dir, log: silent });
});
afterAll(async () => {
  await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

/** A way to the server on which connections can fall silent: they stay open, and nothing passes any more. */
async function silentRelay() {
  const { host, port } = postgres.connection;
  const open = new Set<[net.Socket, net.Socket]>();
  const server = net.createServer((near) => {
    const far = net.connect(join(host, `.s.PGSQL.${port}`));
    const pair: [net.Socket, net.Socket] = [near, far];
    open.add(pair);
    near.pipe(far);
    far.pipe(near);
    for (const socket of pair) socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    fallSilent() {
      for (const [near, far] of open) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    close() {
      for (const pair of open) for (const socket of pair) socket.destroy();
      server.close();
    },
  };
}

test('a connection that falls silent is distrusted and replaced, and reported as a gap; the lock moves to the new connection', async () => {
  const relay = await silentRelay();
  const lost: Error[] = [];
  const heard: string[] = [];
  const trusted: boolean[] = [];
  const anchor: Anchor = await openAnchor({
    connection: { ...postgres.connection, host: '127.0.0.1', port: relay.port },
    channels: ['news'],
    nodeId: 'node_1',
    dataDir: dir,
    recover: async () => void trusted.push(anchor.listening),
    onLost: (error) => lost.push(error),
    log: silent,
    beatMs: 2000, // long enough for a busy machine
  });
  const notify = async (word: string) => {
    const client = new Client(postgres.connection);
    await client.connect();
    await client.query(`notify news, '${word}'`);
    await client.end();
  };
  try {
    // A payload that one listener cannot read reaches the others, and does not end the process.
    anchor.on('news', (word) => void JSON.parse(word));
    anchor.on('news', (word) => heard.push(word));
    await notify('before');
    await expect.poll(() => heard).toEqual(['before']);
    expect(anchor.listening).toBe(true);

    const gap = new Promise<void>((resolve) => anchor.onGap(resolve));
    relay.fallSilent();
    await notify('into the silence');
    await gap;
    expect(trusted).toEqual([false]);
    expect(anchor.listening).toBe(true);
    await notify('after');
    await expect.poll(() => heard).toEqual(['before', 'after']);
    expect(lost).toEqual([]); // it did not take its own old connection for another service
  } finally {
    await anchor.close();
    relay.close();
  }
});
