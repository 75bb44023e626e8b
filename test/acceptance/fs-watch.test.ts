import type Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';
import { isolationHere } from '../support/sandbox.ts';

const isolation = await isolationHere();
const home = '/home/corral';
/** vitest waits for one second by default. */
const patience = { timeout: 60_000 };

describe.runIf(isolation.sandboxed)('watches of a session', () => {
  let service: Service;
  let sdk: Kernel;
  const sessions = { headless: '', headful: '' };

  beforeAll(async () => {
    service = await startService();
    sdk = service.sdk();
    for (const shape of ['headless', 'headful'] as const)
      sessions[shape] = (
        await sdk.browsers.create({ headless: shape === 'headless', timeout_seconds: 600 })
      ).session_id;
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
  });

  /** Reads a watch's events with the SDK, in the background. */
  function reading(id: string, watch: string) {
    const seen: string[] = [];
    const stop = new AbortController();
    const opened = sdk.browsers.fs.watch.events(watch, { id }, { signal: stop.signal });
    const end = (async () => {
      for await (const { type, path } of await opened) if (path) seen.push(`${type} ${path.slice(home.length)}`); // a stream that is silent for long has a heartbeat
      return 'ended';
    })().catch((error: Error) => error.name);
    return {
      seen,
      /** From then on it gets what happens. */
      opened,
      end,
      leave: () => stop.abort(),
      until: (what: string) => vi.waitFor(() => expect(seen).toContain(what), { timeout: 60_000 }),
    };
  }

  const sh = (id: string, script: string) => sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', script] });

  test.each(['headless', 'headful'] as const)('a watch reports changes below a directory, %s', async (shape) => {
    const id = sessions[shape];
    await sh(id, 'mkdir -p ~/w/there');
    const { watch_id } = await sdk.browsers.fs.watch.start(id, { path: `${home}/w`, recursive: true });
    await sh(id, 'mkdir -p ~/w/new/deep && echo x >~/w/new/deep/file'); // before there is a reader
    await sdk.browsers.fs.writeFile(id, Buffer.from('x'), { path: `${home}/w/there/written` });
    const early = reading(id, watch_id!);
    await early.until('CREATE /w/new/deep/file');
    await early.until('CREATE /w/there/written');
    expect(early.seen.filter((line) => line.includes('.part'))).toEqual([]);
    expect(early.seen.indexOf('CREATE /w/new')).toBeLessThan(early.seen.indexOf('CREATE /w/new/deep/file'));
    const late = reading(id, watch_id!); // gets what happens from now on
    await late.opened;
    await sh(id, 'mv ~/w/there/written ~/w/there/renamed; echo y >>~/w/there/renamed; rm -r ~/w/new');
    for (const reader of [early, late]) {
      await reader.until('RENAME /w/there/written');
      await reader.until('CREATE /w/there/renamed');
      await reader.until('DELETE /w/new/deep/file');
    }
    early.leave();
    late.leave();
    await Promise.all([early.end, late.end]);
    // Changes without a reader wait, in order, for the next reader. The service may notice late that both have left, and still send changes
    // to them, so the changes are repeated under other names.
    let round = 0;
    await vi.waitFor(async () => {
      const [a, b] = [`a${++round}`, `b${round}`];
      await sh(id, `echo a >~/w/${a}; echo b >~/w/${b}`);
      const next = reading(id, watch_id!);
      try {
        await next.until(`CREATE /w/${b}`);
        expect(next.seen.indexOf(`CREATE /w/${a}`)).toBeLessThan(next.seen.indexOf(`CREATE /w/${b}`));
        expect(next.seen).toContain(`CREATE /w/${a}`);
        await sdk.browsers.fs.watch.stop(watch_id!, { id });
        expect(await next.end).toBe('ended');
      } finally {
        next.leave();
      }
    }, patience);
    await expect(sdk.browsers.fs.watch.stop(watch_id!, { id })).rejects.toMatchObject({ status: 404 });
    await expect(sdk.browsers.fs.watch.events(watch_id!, { id })).rejects.toMatchObject({ status: 404 });
  });

  test.each([
    [{ path: '/none' }, 404, 'path_not_found'],
    [{ path: '/etc/passwd' }, 400, 'wrong_kind_of_file'],
    [{ path: 'relative' }, 400, 'invalid_input'],
    [{}, 400, 'invalid_input'],
  ])('%o is not watched', async (body, status, code) => {
    const answer = await service.call('POST', `/browsers/${sessions.headless}/fs/watch`, body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('a watch ends with its session', async () => {
    const { session_id: id } = await sdk.browsers.create({ headless: true });
    const { watch_id } = await sdk.browsers.fs.watch.start(id, { path: home });
    const reader = reading(id, watch_id!);
    await vi.waitFor(async () => {
      await sh(id, 'date >~/now');
      expect(reader.seen).not.toEqual([]);
    }, patience);
    await sdk.browsers.deleteByID(id);
    expect(await reader.end).toBe('ended');
  });
});
