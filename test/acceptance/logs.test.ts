import { appendFile, mkdir, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tree } from '../../src/chromium/sandbox/process-tree.ts';
import { commandLine } from '../support/leftovers.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService();
  sdk = service.sdk();
});
afterAll(() => service.close());

describe.each([{ headless: true }, { headless: false }])('logs of a session, headless: $headless', ({ headless }) => {
  let id: string;
  let cdp: string;
  /** The session's home, as we see it. */
  let home: string;
  beforeAll(async () => {
    ({ session_id: id, cdp_ws_url: cdp } = await sdk.browsers.create({ headless, timeout_seconds: 300 }));
    home = join(service.dataDir, 'sessions', id, 'home');
  });
  afterAll(() => sdk.browsers.deleteByID(id));

  const write = (name: string, text: string) => writeFile(join(home, name), text, { mode: 0o644 });
  const append = (name: string, text: string) => appendFile(join(home, name), text);
  const stream = (query: Parameters<typeof sdk.browsers.logs.stream>[1]) => sdk.browsers.logs.stream(id, query);

  // Files are the same beside both browsers, and so is what reads them.
  test.runIf(headless)('streams a whole file, with long lines cut', async () => {
    await write('whole.log', `one\nzwei: ä 世\n${'x'.repeat(100_000)}\nlast`);
    const seen: string[] = [];
    for await (const { event, message, timestamp } of await stream({
      source: 'path',
      path: '/home/corral/whole.log',
      follow: false,
    })) {
      expect(event).toBe('log');
      expect(Date.parse(timestamp)).toBeGreaterThan(0);
      seen.push(message);
    }
    expect(seen).toEqual(['one', 'zwei: ä 世', 'x'.repeat(64 * 1024), 'last']);
  });

  test.runIf(headless)('follows a file from its end, cut or replaced', async () => {
    await write('app.log', 'before\n');
    const lines = await stream({ source: 'path', path: '/home/corral/app.log' });
    const reader = lines[Symbol.asyncIterator]();
    const next = async (): Promise<string | undefined> => {
      const { done, value } = await reader.next();
      return done || value.event === 'log' ? value?.message : next(); // the others are heartbeats
    };
    await append('app.log', 'after\nmore\n');
    expect([await next(), await next()]).toEqual(['after', 'more']);
    await truncate(join(home, 'app.log'), 0);
    await new Promise((resolve) => setTimeout(resolve, 1500)); // a file that grows again before the next check is not seen as truncated
    await append('app.log', 'cut\n');
    expect(await next()).toBe('cut');
    await write('next.log', 'fresh\n');
    await rename(join(home, 'next.log'), join(home, 'app.log'));
    expect(await next()).toBe('fresh');
    lines.controller.abort();
  });

  test.runIf(headless)('refuses missing and invalid sources, and reads nothing outside of the session', async () => {
    await mkdir(join(home, 'folder'));
    await symlink(join(service.dataDir, 'api-key'), join(home, 'link'));
    for (const [query, status] of [
      ['source=path', 400],
      ['source=supervisor', 400],
      ['source=elsewhere', 400],
      ['source=path&path=/home/corral/app.log&supervisor_process=chromium', 400],
      ['source=supervisor&supervisor_process=chromium&path=/x', 400],
      ['source=path&path=/home/corral/nothing', 404],
      ['source=path&path=/home/corral/folder', 404],
      ['source=path&path=/dev/zero', 404],
      ['source=path&path=/home/corral/link', 404],
      [`source=path&path=${join(service.dataDir, 'api-key')}`, 404],
      ['source=supervisor&supervisor_process=sshd', 404],
    ] as const) {
      const answer = await service.call('GET', `/browsers/${id}/logs/stream?${query}`);
      expect([query, answer.status]).toEqual([query, status]);
    }
    expect(await service.call('GET', '/browsers/nobody/logs/stream?source=path&path=/x')).toMatchObject({
      status: 404,
    });
  });

  const supervised = async (supervisor_process: string) => {
    const seen: string[] = [];
    const lines = await stream({ source: 'supervisor', supervisor_process, follow: false });
    for await (const { message } of lines) seen.push(message);
    return seen;
  };

  test('streams the output of the session’s own processes', async () => {
    // Chromium restarts its network service when that dies, and logs it.
    const { engine, release } = await service.app.sessions.hold(id);
    const network = tree(engine.browser.init!).find((pid) => commandLine(pid).includes('NetworkService'));
    process.kill(network!, 'SIGKILL');
    release();
    await expect.poll(async () => (await supervised('chromium')).join('\n')).toMatch(/network service crashed/i);

    expect(await supervised('recorder')).toEqual([]);
    const { replay_id } = await sdk.browsers.replays.start(id);
    await sdk.browsers.replays.stop(replay_id, { id });
    // Between the two may stand what the encoder says, such as that it got no picture.
    await expect
      .poll(async () => (await supervised('recorder')).filter((line) => line.startsWith('recording ')))
      .toEqual([`recording ${replay_id} started`, `recording ${replay_id} ended: stopped`]);
    if (headless) {
      const answer = await service.call('GET', `/browsers/${id}/logs/stream?source=supervisor&supervisor_process=xvnc`);
      expect(answer.status).toBe(404);
    } else {
      expect((await supervised('xvnc')).join('\n')).toContain('Xvnc');
    }
  });

  test('a stream ends with its session, and the last lines stay', async () => {
    await sdk.browsers.update(id, { telemetry: { browser: { console: { enabled: true } } } });
    const command = { command: 'sh', args: ['-c', 'echo in the background; exec sleep 600'] };
    const { process_id } = await sdk.browsers.process.spawn(id, command);
    for await (const { data_b64 } of await sdk.browsers.process.stdoutStream(process_id!, { id })) if (data_b64) break;
    await append('app.log', 'there\n');
    const lines = await stream({ source: 'path', path: '/home/corral/app.log' });
    const processes = await stream({ source: 'supervisor', supervisor_process: 'chromium' });
    const browser = await chromium.connectOverCDP(cdp);
    const all = Promise.all(
      [lines, processes].map(async (events) => {
        for await (const _ of events);
      }),
    );
    await browser.contexts()[0]!.pages()[0]!.evaluate(`console.log('said', 'aloud')`);
    await expect.poll(async () => (await supervised('console')).join('\n')).toMatch(/log: said aloud$/m);
    await sdk.browsers.deleteByID(id);
    expect(await all).toHaveLength(2);
    await browser.close();

    // Kept when nothing else is left of the session, for which a busy machine takes its time.
    await expect.poll(async () => (await supervised('chromium')).join('\n')).toMatch(/network service crashed/i);
    expect((await supervised('console')).join('\n')).toMatch(/log: said aloud$/m);
    expect((await supervised('processes')).join('\n')).toMatch(/^sh\[\d+\]: in the background$/m);
    expect((await supervised('recorder'))[0]).toMatch(/^recording [\w-]+ started$/);
    for (const query of ['source=path&path=/home/corral/app.log', 'source=supervisor&supervisor_process=sshd'])
      expect((await service.call('GET', `/browsers/${id}/logs/stream?${query}`)).status).toBe(404);
    ({ session_id: id } = await sdk.browsers.create({ headless: true }));
  });
});
