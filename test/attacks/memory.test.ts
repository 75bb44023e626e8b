import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { RawClient } from '../support/mux-server.ts';
import { spawnService } from '../support/process.ts';
import { upgrade } from '../support/upgrade.ts';

await requireSandbox();

const MB = 1_000_000;
const MIB = 1024 * 1024;
/** Of the service alone, without its browsers and its database. */
const MOST_RESIDENT = 400 * MB;
const KEY = 'sk_the_attackers_own_key';
/** Longer than the five seconds after which a client that does not read is dropped. */
const WATCHED_MS = 7000;

interface Session {
  session_id: string;
  cdp_ws_url: string;
}

describe('the memory of the service', () => {
  let service: Awaited<ReturnType<typeof spawnService>>;
  let dataDir: string;
  let neighbour: Session;
  const sockets = new Set<Socket>();
  const clients = new Set<RawClient>();

  // A service of its own for each test: what one test made the service take and give back is still resident in the next.
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'corral-memory-'));
    service = await spawnService({ CORRAL_DATA_DIR: dataDir, CORRAL_API_KEY: KEY, CORRAL_WARM_SPARES: 'off' });
    neighbour = await create();
  }, 300_000);
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    for (const { socket } of clients) socket.terminate();
    sockets.clear();
    clients.clear();
    await service?.kill();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  const post = (path: string, body: string, project?: string, signal?: AbortSignal) =>
    fetch(service.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        ...(project === undefined ? {} : { 'x-kernel-project': project }),
      },
      body,
      signal: signal ?? null,
    });

  async function create(project?: string): Promise<Session> {
    const response = await post('/browsers', JSON.stringify({ headless: true, timeout_seconds: 600 }), project);
    expect(response.status).toBe(200);
    return (await response.json()) as Session;
  }

  async function createProject(name: string): Promise<string> {
    expect((await post('/org/projects', JSON.stringify({ name }))).status).toBe(201);
    return name;
  }

  function resident(): number {
    const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024;
  }

  /** The most that the service had in memory while it was watched, during which the neighbour was answered. */
  async function watch(): Promise<number> {
    let most = 0;
    let watching = true;
    const client = await open(neighbour);
    const { sessionId } = await firstPage(client);
    const asking = (async () => {
      for (; watching; await sleep(250)) {
        const { result } = await client.result<{ result: { value: number } }>(
          'Runtime.evaluate',
          { expression: '6 * 7' },
          sessionId,
        );
        expect(result.value).toBe(42);
      }
    })();
    for (const end = Date.now() + WATCHED_MS; Date.now() < end; await sleep(50)) most = Math.max(most, resident());
    watching = false;
    await asking;
    return most;
  }

  async function open({ cdp_ws_url }: Session): Promise<RawClient> {
    const client = await RawClient.open(cdp_ws_url);
    clients.add(client);
    return client;
  }

  async function firstPage(client: RawClient): Promise<{ sessionId: string }> {
    const { targetInfos } = await client.result<{ targetInfos: { targetId: string; type: string }[] }>(
      'Target.getTargets',
    );
    return client.attachTo(targetInfos.find(({ type }) => type === 'page')!.targetId);
  }

  /** Asks for 64 MiB and never reads again. */
  async function askAndTurnAway(session: Session): Promise<RawClient> {
    const client = await open(session);
    const { sessionId } = await firstPage(client);
    client.socket.pause();
    const options = { expression: '"x".repeat(64 * 1024 * 1024)', returnByValue: true };
    client.socket.send(JSON.stringify({ id: 1000, method: 'Runtime.evaluate', params: options, sessionId }));
    return client;
  }

  test('is not filled by twenty clients that ask for 64 MB each and never read', { timeout: 300_000 }, async () => {
    const sessions = await Promise.all([create(), create(), create()]);
    // Ten on one session, five on each of two others.
    const plan = [...Array.from({ length: 10 }, () => 0), ...Array.from({ length: 5 }, () => [1, 2]).flat()];
    await Promise.all(plan.map((i) => askAndTurnAway(sessions[i]!)));
    expect(await watch()).toBeLessThan(MOST_RESIDENT);

    // Who reads gets all of it, while others do not.
    const honest = await open(neighbour);
    const { sessionId } = await firstPage(honest);
    const options = { expression: '"x".repeat(64 * 1024 * 1024)', returnByValue: true };
    const { result } = await honest.result<{ result: { value: string } }>('Runtime.evaluate', options, sessionId);
    expect(result.value.length).toBe(64 * MIB);
    expect(resident()).toBeLessThan(MOST_RESIDENT);
  });

  test('is not filled by clients that begin large messages and stop', { timeout: 300_000 }, async () => {
    const session = await create();
    const head = Buffer.alloc(14);
    head[0] = 0x81;
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(200 * MIB), 2);
    for (let i = 0; i < 20; i++) {
      const { socket } = await upgrade(session.cdp_ws_url);
      sockets.add(socket!);
      socket!.write(head);
      socket!.write(Buffer.alloc(32 * MIB, 0x20)); // as far as it is taken
    }
    expect(await watch()).toBeLessThan(MOST_RESIDENT);
  });

  test('is not filled by requests whose bodies stop before their end', { timeout: 300_000 }, async () => {
    const { hostname, port } = new URL(service.url);
    const path = `/browsers/${neighbour.session_id}/playwright/execute`;
    for (let i = 0; i < 120; i++) {
      const socket = connect(Number(port), hostname).on('error', () => {});
      sockets.add(socket);
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\nContent-Length: ${4 * MIB}\r\n\r\n`,
      );
      socket.write(`{"code":"${'x'.repeat(4 * MIB - 100)}`);
    }
    expect(await watch()).toBeLessThan(MOST_RESIDENT);
  });

  test('a session takes a bounded number of websockets, and says so', async () => {
    const session = await create();
    let refusal: { status: number; body: unknown } | undefined;
    for (let i = 0; i < 200 && !refusal; i++) {
      const answer = await upgrade(session.cdp_ws_url);
      if (answer.socket) sockets.add(answer.socket);
      else refusal = answer;
    }
    expect(refusal).toMatchObject({ status: 429, body: { code: 'too_many_connections' } });
  });

  test(
    'is not kept from a project by another one whose requests with large bodies wait',
    { timeout: 300_000 },
    async () => {
      const [hoarder, other] = [await createProject('hoarder'), await createProject('other')];
      const [slow, quick] = [await create(hoarder), await create(other)];
      const execute = ({ session_id }: Session, project: string, code: string, size: number, signal?: AbortSignal) =>
        post(
          `/browsers/${session_id}/playwright/execute`,
          JSON.stringify({ code, timeout_sec: 170 }).padEnd(size),
          project,
          signal,
        );
      expect((await execute(quick, other, 'return 1', MIB)).status).toBe(200); // its guest runs from now on
      const over = new AbortController();
      const sleeping = 'await new Promise((resolve) => setTimeout(resolve, 170_000))';
      const hoarded = Array.from({ length: 12 }, () => execute(slow, hoarder, sleeping, 4 * MIB, over.signal));
      for (const answer of hoarded) answer.catch(() => {});
      await sleep(2000); // until they hold all they may
      const first = (answer: Promise<Response>) => Promise.race([answer, ...hoarded]);
      const small = execute(quick, other, 'return 1', MIB);
      expect(await first(small)).toBe(await small);
      // Larger than a project may hold, so it has to exceed the limit.
      const body = JSON.stringify({ url: 'http://nowhere.invalid/', method: 'POST', body: 'x'.repeat(20 * MIB) });
      const large = post(`/browsers/${quick.session_id}/curl`, body, other);
      expect(await first(large)).toBe(await large);
      over.abort();
    },
  );
});
