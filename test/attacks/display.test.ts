import type Kernel from '@onkernel/sdk';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { requireSandbox } from '../support/sandbox.ts';
import { browserYard } from '../support/browsers.ts';
import { descriptors } from '../support/leftovers.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

/** PostgreSQL answers this with one byte, N or S, before it knows who asks. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/**
 * The service speaks RFB with a session's display. A session that could put another socket in its place would have the service
 * connect to any unix socket of the host, and would be given raw bytes both ways by the live view.
 */
describe('a session cannot put another socket in the place of its display', () => {
  let service: Service;
  let sdk: Kernel;
  let session: Kernel.BrowserCreateResponse;
  let hostDir: string;
  let listener: Server;
  /** How often a client connected to the host's own socket. */
  let connections = 0;

  beforeAll(async () => {
    hostDir = mkdtempSync(join(tmpdir(), 'corral-host-'));
    chmodSync(hostDir, 0o777);
    listener = createServer((socket) => {
      connections += 1;
      socket.on('error', () => {}).end();
    });
    listener.listen(join(hostDir, 'socket'));
    await once(listener, 'listening');
    chmodSync(join(hostDir, 'socket'), 0o777);
    service = await startService();
    sdk = service.sdk();
    session = await sdk.browsers.create({ headless: false, timeout_seconds: 600 });
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
    listener.close();
    rmSync(hostDir, { recursive: true, force: true });
  });

  /**
   * Everything that is a socket, or has a name of the display, and every directory that holds such a thing: replaced by a link to
   * `target` or to its directory, as the session's user and as the root of a namespace of its own.
   */
  async function replaceAll(target: string): Promise<string> {
    const script = `
      for path in $(find / \\( -path /proc -o -path /usr \\) -prune -o \\( -type s -o -name 'rfb*' -o -name 'X0' \\) -print 2>/dev/null); do
        rm -f "$path" && ln -s ${target} "$path" && echo "replaced $path"
        ln -sfn ${target} "$path" && echo "replaced $path"
        mv -T "$(dirname "$path")" "$(dirname "$path").old" && ln -s ${hostDir} "$(dirname "$path")" && echo "moved $path"
      done
      for path in /tmp/.X11-unix /run/corral /run/display /home/corral/display; do
        mv -T $path $path.old && ln -s ${hostDir} $path && echo "moved $path"
        mkdir -p $path && ln -sf ${target} $path/X0 && ln -sf ${target} $path/rfb && echo "made $path"
        mount --bind /home/corral $path && echo "mounted $path"
      done 2>/dev/null
      true`;
    const said = [];
    for (const as_root of [false, true]) {
      const result = await sdk.browsers.process.exec(session.session_id, {
        command: 'sh',
        args: ['-c', script],
        as_root,
      });
      said.push(Buffer.from(result.stdout_b64!, 'base64').toString());
    }
    return said.join('');
  }

  /**
   * What the display says first over the live view's socket, after `sent`. The service's own messages are text and
   * may come earlier; what the display says is binary.
   */
  async function firstOfLiveView(sent?: Buffer): Promise<string> {
    const url = session.browser_live_view_url!.replace(/^http/, 'ws').replace('/live', '/live/socket');
    const socket = new WebSocket(url);
    try {
      if (sent) socket.once('open', () => socket.send(sent));
      return await new Promise<string>((resolve) => {
        socket.on('message', (data: Buffer, isBinary) => isBinary && resolve(data.toString()));
        socket.on('close', (code) => resolve(`closed with ${code}`));
      });
    } finally {
      socket.terminate();
    }
  }

  const uses: Record<string, () => Promise<unknown>> = {
    'the live view': async () => expect(await firstOfLiveView()).toBe('RFB 003.008\n'),
    'a screenshot': async () => (await sdk.browsers.computer.captureScreenshot(session.session_id)).arrayBuffer(),
    'a click': () => sdk.browsers.computer.clickMouse(session.session_id, { x: 10, y: 10 }),
    'a recording': async () => {
      const { replay_id } = await sdk.browsers.replays.start(session.session_id, { framerate: 2 });
      await sdk.browsers.replays.stop(replay_id, { id: session.session_id });
    },
    'another viewport': () => sdk.browsers.update(session.session_id, { viewport: { width: 900, height: 700 } }),
  };

  test('neither the live view nor pictures, hands, recordings and viewports reach the host', async () => {
    const replaced = await replaceAll(join(hostDir, 'socket'));
    const failed: string[] = [];
    for (const [name, use] of Object.entries(uses))
      await use().catch((error: Error) => failed.push(`${name}: ${error.message}`));
    expect({ connections, failed }, replaced).toEqual({ connections: 0, failed: [] });
  });

  test('PostgreSQL does not answer over the live view', async () => {
    const cluster = join(service.dataDir, 'postgres');
    const database = readdirSync(cluster).find((name) => /^\.s\.PGSQL\.\d+$/.test(name));
    expect(database).toBeDefined();
    await replaceAll(join(cluster, database!));
    expect(await firstOfLiveView(SSL_REQUEST)).toBe('RFB 003.008\n');
  });

  test('the session sees no socket but the X server’s, and cannot take that away', async () => {
    const find = [
      '-c',
      "find / \\( -path /proc -o -path /usr \\) -prune -o -type s -print 2>/dev/null | grep -v '^/tmp/org.chromium'",
    ];
    const { stdout_b64 } = await sdk.browsers.process.exec(session.session_id, { command: 'sh', args: find });
    expect(Buffer.from(stdout_b64!, 'base64').toString()).toBe('/tmp/.X11-unix/X0\n');
    const rm = { command: 'rm', args: ['-f', '/tmp/.X11-unix/X0'] };
    expect((await sdk.browsers.process.exec(session.session_id, rm)).exit_code).not.toBe(0);
  });
});

describe('a display that was taken over', () => {
  test('cannot lead the service to another socket, and leaves no descriptor behind', async () => {
    const yard = await browserYard();
    const listener = createServer((socket) => socket.end('HOST'));
    try {
      listener.listen(join(yard.sessions, 'host'));
      await once(listener, 'listening');
      const browser = await yard.launch({ headless: false });
      // What Xvnc could do from inside of its own sandbox.
      const rfb = join(browser.dir, 'display/rfb/rfb');
      renameSync(rfb, `${rfb}.old`);
      symlinkSync(join(yard.sessions, 'host'), rfb);
      const [first] = (await once(browser.connectDisplay!(), 'data')) as [Buffer];
      expect(first.toString()).toBe('RFB 003.008\n');
      await browser.stop();
      expect([...descriptors(process.pid).keys()].filter((path) => path.includes(yard.sessions))).toEqual([]);
      expect(existsSync(join(browser.dir, 'display'))).toBe(false);
    } finally {
      listener.close();
      await yard.close();
    }
  });
});
