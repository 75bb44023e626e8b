import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { slowness } from './machine-speed.ts';
import { spawnService } from './process.ts';

/** No attack may stop the service for longer, on the machine of docs/benchmarks.md: every other tenant waits meanwhile. */
export const mostStopMs = 100;

const probe = join(import.meta.dirname, 'stop-probe.mjs');
const tries = 5;

/** A service in a process of its own whose event loop is measured. It has a new data directory, and the key `key`. */
export async function measuredService(env: Record<string, string> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'corral-stops-'));
  const socket = join(dir, 'stops');
  const key = 'sk_measured_0123456789abcdef';
  const service = await spawnService({
    CORRAL_DATA_DIR: join(dir, 'data'),
    CORRAL_API_KEY: key,
    CORRAL_WARM_SPARES: 'off',
    NODE_OPTIONS: `--import=${probe}`,
    CORRAL_TEST_STOPS: socket,
    ...env,
  });
  const stopSinceLast = async () => Number(await text(connect(socket)));

  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(service.url + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const answer = await response.text();
    const json = response.headers.get('content-type')?.includes('json') && answer !== '';
    return { status: response.status, text: answer, body: json ? JSON.parse(answer) : undefined };
  }

  /**
   * The longest stop of the event loop that an attack costs, in milliseconds of processor time at the speed of the reference machine. The
   * attack resolves when the service has done all that it causes: it waits for its effect. The first use of code costs its compilation,
   * and other work may fall into the same moment; both only add, so the smallest of a few runs is the cost of the attack itself. A run
   * below the limit needs no other run.
   */
  async function longestStop(attack: () => Promise<unknown>): Promise<number> {
    let smallest = Infinity;
    for (let run = 0; run < tries && smallest >= mostStopMs; run++) {
      await stopSinceLast();
      await attack();
      const stop = await stopSinceLast();
      smallest = Math.min(smallest, stop < mostStopMs ? stop : stop / slowness());
    }
    return smallest;
  }

  return {
    url: service.url,
    key,
    call,
    longestStop,
    output: service.output,
    child: service.child,
    async close() {
      await service.kill();
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
