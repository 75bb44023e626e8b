import Kernel from '@onkernel/sdk';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { traces, untilNothing } from '../support/leftovers.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { isolationHere } from '../support/sandbox.ts';

const isolation = await isolationHere();
const home = '/home/corral';

/** Everything inside a session, asked of the node that does not have it. */
describe.runIf(isolation.sandboxed)('a session of another node', () => {
  let nodes: Nodes;
  let here: Node;
  let there: Node;
  let sdk: Kernel;
  let id: string;

  beforeAll(async () => {
    nodes = await startNodes();
    [here, there] = await Promise.all([
      nodes.start({ CORRAL_MAX_SESSIONS: '2' }),
      nodes.start({ CORRAL_MAX_SESSIONS: '2' }),
    ]);
    while ((await here.members()).length < 2) await sleep(100);
    sdk = new Kernel({ apiKey: nodes.key, baseURL: here.url });
    const made = await there.call('POST', '/browsers', { headless: true, timeout_seconds: 600 });
    id = made.body.session_id;
  });
  afterAll(async () => {
    await nodes?.close();
  });

  test('processes, watches and Playwright work from here, while the session sleeps in between', async () => {
    const { process_id } = await sdk.browsers.process.spawn(id, { command: 'cat', allocate_tty: true });
    const socket = new WebSocket(`${here.url.replace('http', 'ws')}/browsers/${id}/process/${process_id}/attach`, {
      headers: { authorization: `Bearer ${nodes.key}` },
    });
    let seen = '';
    socket.on('message', (data: Buffer) => void (seen += data.toString()));
    await once(socket, 'open');
    socket.send(Buffer.from('typed here\n'));
    await expect.poll(() => seen).toContain('typed here\r\ntyped here');
    const closed = once(socket, 'close'); // before the kill: the socket may close before the kill is answered
    await sdk.browsers.process.kill(process_id!, { id, signal: 'TERM' });
    await closed;
    let ended: number | undefined;
    for await (const event of await sdk.browsers.process.stdoutStream(process_id!, { id })) ended = event.exit_code;
    expect(ended).toBe(143);

    const { watch_id } = await sdk.browsers.fs.watch.start(id, { path: home });
    const state = async () => (await here.call('GET', `/browsers/${id}`)).body.state;
    await expect.poll(state, { timeout: 60_000, interval: 200 }).toBe('standby');
    await sdk.browsers.fs.writeFile(id, Buffer.from('x'), { path: `${home}/seen` });
    for await (const { name } of await sdk.browsers.fs.watch.events(watch_id!, { id })) if (name === 'seen') break;
    const { result } = await sdk.browsers.playwright.execute(id, { code: 'return 6 * 7' });
    expect(result).toBe(42);
  });

  test('large files stream through both nodes, and neither keeps them', async () => {
    const size = 256 * 1024 * 1024;
    const block = Buffer.alloc(256 * 1024, 'corral');
    const headers = { authorization: `Bearer ${nodes.key}` };
    const url = `${here.url}/browsers/${id}/fs`;
    const resident = () =>
      [here, there].map(
        ({ child: { pid } }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024,
      );
    const before = resident();
    let peak = 0;
    const look = () => (peak = Math.max(peak, ...resident().map((now, index) => now - before[index]!)));

    const sent = createHash('sha256');
    const request = http.request(`${url}/write_file?path=${home}/large`, { method: 'PUT', headers });
    for (let at = 0; at < size; at += block.length) {
      sent.update(block);
      if (!request.write(block)) await once(request, 'drain');
      if (at % (64 * block.length) === 0) look();
    }
    request.end();
    const [written] = (await once(request, 'response')) as [http.IncomingMessage];
    expect(written.resume().statusCode).toBe(201);

    const received = createHash('sha256');
    const [file] = (await once(http.get(`${url}/read_file?path=${home}/large`, { headers }), 'response')) as [
      http.IncomingMessage,
    ];
    for await (const chunk of file) received.update(chunk as Buffer);
    look();
    expect(received.digest('hex')).toBe(sent.digest('hex'));
    expect(peak).toBeLessThan(size * 0.7);
  });

  test('a refusal is read here as it was said there, in the middle of a body', async () => {
    const response = await fetch(`${here.url}/browsers/${id}/fs/write_file?path=/etc/mine`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${nodes.key}` },
      body: Buffer.alloc(5_000_000),
    });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'permission_denied']);
  });

  test('processes inside sessions end when their node is killed', async () => {
    await sdk.browsers.process.spawn(id, { command: 'setsid', args: ['sleep', '1000'] });
    const { processes } = traces(there.dataDir);
    await expect.poll(() => processes().join()).toContain('sleep 1000'); // setsid is there a moment before
    await there.kill('SIGKILL');
    expect(await untilNothing(processes, 30_000)).toEqual([]);
  });
});
