import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { traces, untilNothing } from './leftovers.ts';
import { RawClient, type CdpMessage } from './mux-server.ts';
import { startPages, type Pages } from './pages.ts';
import type { Random } from './random.ts';
import {
  endDatabase,
  isBrowser,
  killing,
  late,
  live,
  more,
  patienceMs,
  pick,
  randomFor,
  type Life,
} from './soak-life.ts';

export interface SoakOptions {
  sessions: number;
  concurrency?: number;
  /** The same seed gives each session the same plan; their order depends on the machine. */
  seed?: number;
  /** Every session captures every category of telemetry. Otherwise every other one does. */
  capture?: boolean;
  say?: (line: string) => void;
}

export interface SoakReport {
  seed: number;
  /** How often each thing was done. */
  deeds: Record<string, number>;
  /** Leftovers, and surprises that no kill explains; both must be empty. */
  leftovers: string[];
  surprises: string[];
}

/** One kill of the service for about this many sessions. */
const sessionsPerLife = 20;
/**
 * Many sessions, all sorts of clients, and everything that can be killed is: connections, client processes, renderers,
 * browsers, and the service itself, which then starts again on what it left. In the end, and after each start, the machine
 * must be as if nothing had been.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { sessions, concurrency = 4, seed = Date.now() % 2 ** 31, capture = false, say = () => {} } = options;
  const report: SoakReport = { seed, deeds: {}, leftovers: [], surprises: [] };
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-soak-'));
  const pages = await startPages();
  const trace = traces(dataDir);
  const lives = Math.max(2, Math.round(sessions / sessionsPerLife));
  const did = (deed: string) => (report.deeds[deed] = (report.deeds[deed] ?? 0) + 1);
  const left = (when: string, things: string[]) => report.leftovers.push(...things.map((thing) => `${when}: ${thing}`));
  let done = 0;
  let life = await live(dataDir, pages.host);

  try {
    for (let at = 1; at <= lives; at++) {
      await life.settled();
      const before = await life.descriptors();
      const upTo = Math.floor((sessions * at) / lives);
      let next = done;
      const worker = async () => {
        while (next < upTo) {
          const number = next++;
          const kind = await oneSession(
            { life, pages, capture, did, surprises: report.surprises },
            randomFor(seed, number),
            number,
          );
          done++;
          say(`${done}/${sessions} sessions, life ${at} of ${lives}: ${kind}`);
        }
      };
      const begun = () => next >= upTo;
      const workers = Promise.all(Array.from({ length: concurrency }, worker));

      if (at < lives) {
        // In the middle of it: sessions starting, in use and ending, and those that no client ended.
        const random = randomFor(seed, -at);
        while (!begun()) await sleep(20);
        await sleep(random(500));
        const old = new Set([...trace.processes(), ...trace.directories(), ...trace.cgroups()]);
        for (const kind of ['process', 'directory'])
          if (![...old].some((thing) => thing.startsWith(kind)))
            report.surprises.push(
              `before restart ${at} there was no ${kind} to be seen; then its absence says nothing`,
            );
        report.surprises.push(...life.complaints());
        await life.kill();
        did('kill -9 of the service');
        await workers;
        done = upTo;
        life = await live(dataDir, pages.host);
        const same = () =>
          [...trace.processes(), ...trace.directories(), ...trace.cgroups()].filter((it) => old.has(it));
        left(`after restart ${at}`, await untilNothing(same, patienceMs));
        left(`after restart ${at}`, await trace.rows());
      } else {
        await workers;
        left('in the end', await untilNothing(() => trace.rows(), patienceMs));
        await life.settled();
        left('in the end', await untilNothing(() => life.beyondSpares(), patienceMs));
        left('in the end', await untilNothing(async () => more(before, await life.descriptors()), patienceMs));
      }
    }
    // And an end in the middle of things.
    const interrupted = [true, true, true, false].map((headless) => life.call('POST', '/browsers', { headless }));
    void Promise.allSettled(interrupted);
    await sleep(randomFor(seed, -lives)(200));
    await life.stop();
    const all = () => [
      ...trace.allProcesses(),
      ...trace.directories(),
      ...trace.sockets(),
      ...trace.cgroups(),
      ...trace.mounts(),
    ];
    left('after the service', await untilNothing(all, patienceMs));
    report.surprises.push(...life.complaints());
  } finally {
    await life.kill();
    await pages.close();
    await endDatabase(dataDir);
    await rm(dataDir, { recursive: true, force: true });
  }
  return report;
}

/** Makes a plan from the random numbers, carries it out, and returns its description. Any result of a kill is accepted. */
async function oneSession(
  {
    life,
    pages,
    capture,
    did,
    surprises,
  }: { life: Life; pages: Pages; capture: boolean; did: (deed: string) => void; surprises: string[] },
  random: Random,
  number: number,
): Promise<string> {
  const headless = random(100) < 85;
  const name = `soak-${number}-${random(1e6)}`;
  const clients = clientsFor(random, pages);
  const [first, second] = [clients(), random(4) === 0 ? clients() : undefined];
  const deed = pick(random, deeds);
  const ending = pick(random, endings);
  const plan = `${headless ? 'headless' : 'headful'}, ${first.kind}${second ? ` and ${second.kind}` : ''}, ${deed.what}, ${ending}`;
  did(headless ? 'headless' : 'headful');
  did(deed.what);
  did(ending);
  let disturbed = false;

  try {
    const body = {
      name,
      headless,
      timeout_seconds: 10,
      ...(random(3) === 0 ? { start_url: pages.url } : {}),
      ...(random(3) === 0 ? { viewport: { width: 1280, height: 800 } } : {}),
      ...(random(2) === 0 || capture ? { telemetry: everything } : {}),
    };
    if (deed.what === 'hang up during create') {
      const hangUp = new AbortController();
      setTimeout(() => hangUp.abort(), random(200));
      disturbed = true;
      await life.call('POST', '/browsers', body, hangUp.signal);
      // It was faster than the hand on the phone. It idles out.
      return plan;
    }
    const creating = life.call('POST', '/browsers', body);
    creating.catch(() => {}); // awaited below; the service may be killed before
    if (deed.what === 'delete during create') {
      await sleep(random(150));
      const deleted = await life.call('DELETE', `/browsers/${name}`);
      const { status, text } = await creating;
      const found = await life.call('GET', `/browsers/${name}`);
      disturbed = deleted.status === 204 && [200, 404].includes(status) && found.status === 404; // as it should be
      if (disturbed) return plan;
      if (deleted.status === 204)
        throw new Error(
          `DELETE answered 204, create ${status} ${text}, and then GET ${found.status}. It complains: ${life.complaints().join('\n')}`,
        );
    }
    const created = await creating;
    if (created.status === 529) return `${plan}; refused, the node is full`;
    if (created.status !== 200) throw new Error(`create answered ${created.status}: ${created.text}`);
    const { session_id: id, cdp_ws_url: address } = created.body;

    const working = Promise.allSettled(
      [first, ...(second ? [second] : [])].map(({ kind, work }) => Promise.race([work(address), late(kind)])),
    );
    if (deed.during) {
      disturbed = true;
      await sleep(random(300));
      if (deed.what === 'delete during connect') await life.call('DELETE', `/browsers/${id}`);
      else await deed.during(life, id, random);
    }
    const failed = (await working).find((result) => result.status === 'rejected');
    if (failed && !disturbed) throw failed.reason;
    if (random(3) === 0) {
      const patched = await life.call('PATCH', `/browsers/${id}`, pick(random, patches));
      if (patched.status !== 200 && !disturbed) throw new Error(`PATCH answered ${patched.status}: ${patched.text}`);
    }
    if (ending === 'left to idle') return plan;
    const deleting = [life.call('DELETE', `/browsers/${id}`)];
    if (ending === 'deleted twice at once') deleting.push(life.call('DELETE', `/browsers/${name}`));
    await expectDeleted(life, id, await Promise.all(deleting), disturbed || deleting.length > 1);
  } catch (error) {
    const { message } = error as Error;
    // On a busy machine a client may come after the idle timeout, and is refused as it should be.
    const tooLate = !disturbed && /\b404\b/.test(message) && (await idledOut(life, name));
    if (!disturbed && !tooLate && !life.over) surprises.push(`session ${number} (${plan}): ${message}`);
  }
  return plan;
}

/** Whether this session ended because no client came. Its addresses are removed when the end begins; the list names the reason after the end. */
async function idledOut(life: Life, name: string): Promise<boolean> {
  for (const end = performance.now() + patienceMs; performance.now() < end && !life.over; await sleep(250)) {
    const { body } = await life
      .call('GET', `/browsers?status=deleted&query=${name}`)
      .catch(() => ({ body: undefined }));
    const [ended] = (body as { ended_reason?: string | null }[] | undefined) ?? [];
    if (ended?.ended_reason) return ended.ended_reason === 'idle';
  }
  return false;
}

const endings = ['deleted', 'deleted', 'deleted', 'deleted', 'deleted twice at once', 'left to idle'] as const;

/** Every category that has to be taken out of the browser. */
export const everything = {
  enabled: true,
  browser: Object.fromEntries(
    ['console', 'page', 'interaction', 'network', 'screenshot'].map((name) => [name, { enabled: true }]),
  ),
};

const patches = [
  { telemetry: everything },
  { telemetry: { enabled: false } },
  { tags: { soaked: 'yes' } },
  { viewport: { width: 1024, height: 768 } },
  { viewport: { width: 800, height: 600 }, tags: {} },
];

interface Deed {
  what: string;
  during?: (life: Life, id: string, random: Random) => Promise<unknown>;
}

/** The faults. A fault that is listed n times is n times as frequent. */
const deeds: Deed[] = [
  { what: 'nothing goes wrong' },
  { what: 'nothing goes wrong' },
  { what: 'nothing goes wrong' },
  { what: 'hang up during create' },
  { what: 'delete during create' },
  { what: 'delete during connect', during: async () => {} },
  { what: 'kill -9 of a renderer', during: killing((command) => command.includes('--type=renderer')) },
  { what: 'kill -9 of the browser', during: killing(isBrowser) },
  { what: 'kill -9 of anything in the session', during: killing(() => true) },
  {
    what: 'kill -9 of the browser, and delete',
    during: async (life, id, random) => {
      await killing(isBrowser)(life, id, random);
      await sleep(random(50));
      await life.call('DELETE', `/browsers/${id}`);
    },
  },
];

/** Clients of three makes, each with its own way to leave. */
function clientsFor(random: Random, pages: Pages) {
  return (): { kind: string; work: (address: string) => Promise<void> } => {
    const leaves = random(3) > 0;
    const idleMs = random(400);
    const kind = pick(random, ['raw', 'raw', 'raw', 'Playwright', 'process'] as const);
    const how = leaves ? 'leaves' : 'is cut off';
    switch (kind) {
      case 'raw':
        return { kind: `a raw client that ${how}`, work: (address) => rawClient(address, pages.url, leaves, idleMs) };
      case 'Playwright':
        return { kind: 'Playwright', work: (address) => playwright(address, pages.url) };
      case 'process':
        return { kind: 'a client that is killed', work: (address) => killedClient(address, idleMs) };
    }
  };
}

async function rawClient(address: string, url: string, leaves: boolean, idleMs: number): Promise<void> {
  const client = await RawClient.open(address);
  const closed = client.closed.then(({ code, reason }) => {
    throw new Error(`the connection was closed: ${code} ${reason}`);
  });
  const work = async () => {
    const { sessionId } = await client.page();
    await client.result('Page.enable', {}, sessionId);
    await client.result('Page.setLifecycleEventsEnabled', { enabled: true }, sessionId);
    const { loaderId } = await client.result<{ loaderId: string }>('Page.navigate', { url }, sessionId);
    // Of this document: the load event of the previous, empty page may arrive late.
    const loaded = ({ params }: CdpMessage) => params?.['loaderId'] === loaderId && params['name'] === 'load';
    while (!client.events('Page.lifecycleEvent').some(loaded)) await once(client.socket, 'message');
    await sleep(idleMs);
    if ((await client.evaluate('document.title', sessionId)) !== 'A page') throw new Error('the page is another');
  };
  closed.catch(() => {});
  try {
    // A page whose process was killed may never load: the client leaves then, or its session would never be idle.
    await Promise.race([work(), closed, late('a raw client')]);
  } finally {
    if (leaves) client.socket.close();
    else client.socket.terminate();
  }
}

async function playwright(address: string, url: string): Promise<void> {
  const browser = await chromium.connectOverCDP(address, { timeout: patienceMs });
  try {
    const page = await browser.contexts()[0]!.newPage(); // its own: the first one may be on its way to start_url
    await page.goto(url, { timeout: patienceMs });
    await page.click('button', { timeout: patienceMs });
  } finally {
    await browser.close();
  }
}

/** A process that attaches, sends more than it reads, and is killed in the middle. */
async function killedClient(address: string, afterMs: number): Promise<void> {
  const code = `
    const { WebSocket } = require('ws');
    const socket = new WebSocket(process.argv[1]);
    socket.on('error', () => process.exit(1)).on('close', () => process.exit(0));
    socket.on('open', () => {
      console.log('open');
      socket.send(JSON.stringify({ id: 1, method: 'Target.setAutoAttach', params: { autoAttach: true, waitForDebuggerOnStart: true, flatten: true } }));
      setInterval(() => socket.send(JSON.stringify({ id: 2, method: 'Target.createTarget', params: { url: 'about:blank' } })), 50);
    });`;
  const client = spawn(process.execPath, ['-e', code, address], { stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(client, 'exit');
  await Promise.race([once(client.stdout, 'data'), exited]).finally(async () => {
    await sleep(afterMs);
    client.kill('SIGKILL');
    await exited;
  });
}

/** Fails for a DELETE that was refused, and for what a deleted session left. `goneBefore` allows a session that has ended already. */
async function expectDeleted(
  life: Life,
  id: string,
  answers: readonly { status: number; text: string }[],
  goneBefore: boolean,
): Promise<void> {
  for (const { status, text } of answers) {
    if (status !== 204 && !(goneBefore && status === 404)) throw new Error(`DELETE answered ${status}: ${text}`);
    if (status !== 204) continue;
    // Killed by now; the kernel may take a moment to bury it.
    const all = () => [...life.trace.directories(), ...life.trace.cgroups(), ...life.trace.processes()];
    const stayed = await untilNothing(() => all().filter((thing) => thing.includes(id)), patienceMs);
    if (stayed.length > 0) throw new Error(`DELETE was answered, and there is still ${stayed.join(', ')}`);
  }
}
