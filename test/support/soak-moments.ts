import Kernel from '@onkernel/sdk';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { deploy, plainApp } from './apps.ts';
import { traces, untilNothing } from './leftovers.ts';
import { startShopSite, type ShopSite } from './logins/shop-site.ts';
import { RawClient } from './mux-server.ts';
import { startRegistry } from './npm-registry.ts';
import type { Random } from './random.ts';
import { everything, type SoakReport } from './soak.ts';
import { endDatabase, isBrowser, killing, live, patienceMs, pick, randomFor, type Life } from './soak-life.ts';

export interface MomentsOptions {
  moments: number;
  concurrency?: number;
  /** The same seed gives each moment the same plan; their order depends on the machine. */
  seed?: number;
  /** Without it no apps are deployed, which takes longest. */
  deployments?: boolean;
  say?: (line: string) => void;
}

interface Moment {
  life: Life;
  site: ShopSite;
  kernel: Kernel;
  random: Random;
  name: string;
}

/** Work that is under way. Its session, or the sandbox of its app, is what gets killed. */
interface Work {
  session?: string | undefined;
  cell?: string | undefined;
  /** Resolves when the work has ended, also after an error. */
  over(): Promise<unknown>;
}

/**
 * Kills the session, a page of it, its browser or its guest at random moments of the service's longest operations. Any result is accepted,
 * as long as the kill affects no other session: one process serves all moments, reports no error, counts no fault, and leaves nothing behind.
 */
export async function killAtMoments(options: MomentsOptions): Promise<SoakReport> {
  const { moments, concurrency = 4, seed = Date.now() % 2 ** 31, deployments = true, say = () => {} } = options;
  const report: SoakReport = { seed, deeds: {}, leftovers: [], surprises: [] };
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-moments-'));
  const site = await startShopSite(login);
  const registry = await startRegistry();
  const life = await live(dataDir, site.host, { CORRAL_NPM_REGISTRY: registry.url });
  const kernel = new Kernel({ apiKey: life.key, baseURL: life.url, maxRetries: 0, timeout: patienceMs });
  const kinds = works.filter(({ deploys }) => deployments || !deploys);

  try {
    await life.call('POST', '/credentials', { name: 'ann', domain: site.host, values: login });
    if (deployments) await deploy(kernel, await plainApp(), 'index.js');
    let next = 0;
    const worker = async () => {
      while (next < moments && life.ended() === null) {
        const number = next++;
        const random = randomFor(seed, number);
        const { what, begin, longestMs, inCell } = kinds[number % kinds.length]!;
        const victim = inCell ? anyOfIt : pick(random, victims);
        const plan = `${what}: ${victim.what}`;
        report.deeds[plan] = (report.deeds[plan] ?? 0) + 1;
        const moment = { life, site, kernel, random, name: `moment-${number}` };
        // Refused, not found, hung up: a kill explains all of it.
        const work = await begin(moment).catch(() => undefined);
        await sleep(random(longestMs));
        const hit = work !== undefined && (await strike(moment, work, victim).catch(() => false));
        if (!hit) report.deeds['nothing was there to kill'] = (report.deeds['nothing was there to kill'] ?? 0) + 1;
        await work?.over().catch(() => {});
        const { status } = await life.call('GET', '/health').catch((error: Error) => ({ status: error.message }));
        if (status !== 200) report.surprises.push(`moment ${number} (${plan}): the service answers ${status}`);
        say(`${number + 1}/${moments} moments: ${plan}${hit ? '' : ', and there was none'}`);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    if (life.ended() === null) {
      const { text } = await life.call('GET', '/metrics');
      report.surprises.push(...text.split('\n').filter((line) => line.startsWith('corral_faults_total{')));
      report.leftovers.push(...(await leftovers(life, dataDir)));
    } else report.surprises.push(`The service ended: ${life.ended()}`);
  } finally {
    await life.stop();
    report.surprises.push(...life.complaints().filter((line) => !ofKills.some((words) => line.includes(words))));
    await site.close();
    await registry.close();
    await endDatabase(dataDir);
    await rm(dataDir, { recursive: true, force: true });
  }
  return report;
}

/**
 * Errors of the log that a kill explains: a request waited for a guest that was killed, or the sandbox of a build was killed before it
 * had handed over its sockets.
 */
const ofKills = ['"code":"guest_lost"', 'the network namespace handed over no socket'];

const login = { username: 'ann', password: 'pl4nted-p4ssword' };

async function leftovers(life: Life, dataDir: string): Promise<string[]> {
  const { body } = await life.call('GET', '/browsers?limit=100');
  for (const { session_id: id } of body as { session_id: string }[]) await life.call('DELETE', `/browsers/${id}`);
  await life.settled();
  const left = [
    ...(await untilNothing(() => life.trace.rows(), patienceMs)),
    ...(await untilNothing(() => life.beyondSpares(), patienceMs)),
  ];
  // An app that runs keeps a warm worker, so one cell may be there. A build has none any more.
  const cells = () => traces(join(dataDir, 'workshop'), 'cells').directories();
  return [...left, ...(await untilNothing(() => cells().filter((name) => !name.includes('/worker-')), patienceMs))];
}

interface Victim {
  what: string;
  /** False: there was nothing to kill. */
  kill: (life: Life, id: string, random: Random) => Promise<boolean>;
}

const victims: Victim[] = [
  {
    what: 'the session is deleted',
    kill: async (life, id) => (await life.call('DELETE', `/browsers/${id}`)).status === 204,
  },
  { what: 'a page is killed', kill: killing((command) => command.includes('--type=renderer')) },
  { what: 'the browser is killed', kill: killing(isBrowser) },
  { what: 'the guest is killed', kill: killing((command) => command.includes('guest/inside/main.js')) },
];
/** A build has no session: it is its own sandbox that is killed. So is the worker's of some invocations. */
const anyOfIt: Victim = { what: 'its sandbox is killed', kill: killing(() => true) };

async function strike({ life, random }: Moment, { cell, session }: Work, { kill }: Victim): Promise<boolean> {
  const id = cell ?? session;
  return id !== undefined && kill(life, id, random);
}

/** A session with a guest that runs something, and with a page that is on its way to the site. */
async function session({ life, site }: Moment, wish: object) {
  const { body, status, text } = await life.call('POST', '/browsers', { timeout_seconds: 10, ...wish });
  if (status !== 200) throw new Error(text);
  const id = body.session_id as string;
  const slept = life.call('POST', `/browsers/${id}/process/exec`, { command: 'sleep', args: ['1'] }).catch(() => {});
  const client = await RawClient.open(body.cdp_ws_url);
  const visited = (async () => {
    const { sessionId } = await client.page();
    for (let visit = 0; visit < 5; visit++) {
      await client.result('Page.navigate', { url: `${site.url}/account?${visit}` }, sessionId);
      await sleep(100);
    }
  })();
  const closed = client.closed.then(() => {});
  const busy = Promise.race([visited.catch(() => {}), closed]);
  const over = async () => {
    await Promise.race([Promise.all([busy, slept]), sleep(patienceMs)]);
    client.socket.terminate();
    await life.call('DELETE', `/browsers/${id}`);
  };
  return { id, body, over };
}

/** Asks until there is an answer. A work that was killed may never give one. */
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(100)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
  return undefined;
}

interface Kind {
  what: string;
  longestMs: number;
  deploys?: boolean;
  /** The killed processes are those of an app, not of a session. */
  inCell?: boolean;
  begin: (moment: Moment) => Promise<Work>;
}

const works: Kind[] = [
  {
    what: 'a login',
    longestMs: 5000,
    async begin({ life, site, name, random }) {
      const connection = { domain: site.host, profile_name: name, login_url: `${site.url}/login` };
      const { body } = await life.call('POST', '/auth/connections', { ...connection, credential: { name: 'ann' } });
      const { id } = body;
      await life.call('POST', `/auth/connections/${id}/login`, { record_session: random(2) === 0 });
      const state = async () => (await life.call('GET', `/auth/connections/${id}`)).body;
      return {
        session: (await state()).browser_session_id ?? undefined,
        async over() {
          await eventually(async () => ((await state()).flow_status === 'IN_PROGRESS' ? undefined : true));
          await life.call('DELETE', `/auth/connections/${id}`);
        },
      };
    },
  },
  {
    what: 'a recording',
    longestMs: 1500,
    async begin(moment) {
      const made = await session(moment, { headless: moment.random(3) > 0 });
      const { body } = await moment.life.call('POST', `/browsers/${made.id}/replays`, { framerate: 10 });
      const over = async () => {
        await moment.life.call('POST', `/browsers/${made.id}/replays/${body.replay_id}/stop`);
        await made.over();
      };
      return { session: made.id, over };
    },
  },
  {
    what: 'a capture',
    longestMs: 1500,
    async begin(moment) {
      const made = await session(moment, { headless: true, telemetry: everything, replay_buffer_seconds: 10 });
      return { session: made.id, over: made.over };
    },
  },
  {
    what: 'a live view',
    longestMs: 1500,
    async begin(moment) {
      const made = await session(moment, { headless: moment.random(2) > 0 });
      const address = new URL(made.body.browser_live_view_url as string);
      address.protocol = 'ws:';
      address.pathname = '/browser/live/socket';
      const viewers = [1, 2].map(() => new WebSocket(address).on('error', () => {}));
      const over = async () => {
        for (const viewer of viewers) viewer.terminate();
        await made.over();
      };
      return { session: made.id, over };
    },
  },
  {
    what: 'a profile save',
    longestMs: 600,
    async begin(moment) {
      const { life, name } = moment;
      await life.call('POST', '/profiles', { name });
      const made = await session(moment, { headless: true, profile: { name, save_changes: true } });
      await sleep(moment.random(500));
      const deleted = life.call('DELETE', `/browsers/${made.id}`).catch(() => {});
      const over = async () => {
        await Promise.all([deleted, made.over()]);
        await life.call('DELETE', `/profiles/${name}`);
      };
      return { session: made.id, over };
    },
  },
  {
    what: 'an invocation',
    longestMs: 1500,
    deploys: true,
    async begin({ kernel }) {
      const request = { app_name: 'plain', action_name: 'browses', version: 'latest', async: true } as const;
      const { id } = await kernel.invocations.create({ ...request, payload: '{"wait":true}' });
      const [browser] = (await eventually(async () => {
        const { browsers } = await kernel.invocations.listBrowsers(id);
        return browsers.length > 0 ? browsers : undefined;
      })) ?? [undefined];
      const over = () => kernel.invocations.update(id, { status: 'failed' });
      return { session: browser?.session_id, over };
    },
  },
  {
    what: 'the worker of an invocation',
    longestMs: 1500,
    deploys: true,
    inCell: true,
    async begin({ life, kernel }) {
      const request = { app_name: 'plain', action_name: 'waits', version: 'latest', async: true } as const;
      const { id } = await kernel.invocations.create({ ...request, payload: '{"ms":3000}' });
      const cell = await eventually(() => cellIn(life, 'worker-'));
      return { cell, over: () => kernel.invocations.update(id, { status: 'failed' }) };
    },
  },
  {
    what: 'a build',
    longestMs: 2000,
    deploys: true,
    inCell: true,
    async begin({ life, kernel }) {
      const deployed = deploy(kernel, await plainApp(), 'index.js').catch(() => undefined);
      const cell = await eventually(() => cellIn(life, 'build-'));
      return { cell, over: () => Promise.race([deployed, sleep(patienceMs)]) };
    },
  },
];

/** The directory's name of a build or a worker that runs. */
async function cellIn(life: Life, beginning: string): Promise<string | undefined> {
  const names = await readdir(join(life.trace.sessions, '../workshop/cells')).catch(() => []);
  return names.find((name) => name.startsWith(beginning));
}
