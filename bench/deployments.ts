import Kernel from '@onkernel/sdk';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { spawnService } from '../test/support/process.ts';
import { deploy, plainApp } from '../test/support/apps.ts';
import { startRegistry } from '../test/support/npm-registry.ts';
import { median, type Row } from './rows.ts';

const warm = 50;
const many = 200;
const byHand = 5;
/** Each has to be deployed again, since only the first invocation of a version starts a worker. */
const versions = 5;

/** The first invocation of a deployment, a warm one, and many at once; beside Node, started by hand on the same file. */
export async function benchDeployments(): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
  const registry = await startRegistry(['@onkernel/sdk']);
  const service = await spawnService({ CORRAL_DATA_DIR: join(dir, 'data'), CORRAL_NPM_REGISTRY: registry.url });
  try {
    const apiKey = (await readFile(join(dir, 'data/api-key'), 'utf8')).trim();
    const client = new Kernel({ apiKey, baseURL: service.url, timeout: 120_000, maxRetries: 0 });
    const invoke = (more: Partial<Kernel.InvocationCreateParams> = {}) =>
      client.invocations.create({ app_name: 'plain', action_name: 'nothing', version: `${versions}`, ...more });
    const app = await plainApp();
    const firsts: number[] = [];
    for (let n = 1; n <= versions; n++) {
      const { deployment } = await deploy(client, app, 'index.js', { version: `${n}` });
      if (deployment.status !== 'running') throw new Error(deployment.status_reason);
      firsts.push(...(await times(1, () => invoke({ version: `${n}` }))));
    }
    const cold = median(firsts);
    const node = median(await times(byHand, () => nodeByHand(dir)));
    const warmed = median(await times(warm, () => invoke()));
    const started = performance.now();
    await Promise.all(Array.from({ length: many }, () => invoke()));
    const seconds = (performance.now() - started) / 1000;
    return [
      { what: 'first invocation on a node', value: cold, unit: 'ms', ratio: cold / node, beside: 'node app.js' },
      { what: 'warm invocation', value: warmed, unit: 'ms', ratio: warmed / node, beside: 'node app.js' },
      { what: `${many} invocations of an empty action`, value: many / seconds, unit: 'per second' },
    ];
  } finally {
    await service.kill();
    await registry.close();
    await rm(dir, { recursive: true, force: true });
  }
}

async function times(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let done = 0; done < count; done++) {
    const started = performance.now();
    await work();
    taken.push(performance.now() - started);
  }
  return taken;
}

/** What a user without this service does: Node runs a file that loads the SDK and does nothing. */
async function nodeByHand(dir: string): Promise<void> {
  const path = join(dir, 'app.cjs');
  await writeFile(
    path,
    `const { Kernel } = require(${JSON.stringify(resolve('node_modules/@onkernel/sdk'))}); void Kernel;`,
  );
  const child = spawn(process.execPath, [path], { stdio: 'ignore' });
  await once(child, 'exit');
}
