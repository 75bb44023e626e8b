import type Kernel from '@onkernel/sdk';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { groupsOf } from '../../src/chromium/sandbox/cgroup.ts';
import { enter } from '../../src/chromium/sandbox/entry.ts';
import { requireSandbox, unfiltered } from '../support/sandbox.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

const isolation = await requireSandbox();
const SECRET = 'a-word-nobody-inside-may-read';

/**
 * What one session can reach of the host, of the service and of another session: nothing. Every address that is tried is a
 * loopback address, or lies in the session's own network namespace, which has no way out.
 */
describe('from inside a session', () => {
  let pages: Pages;
  let service: Service;
  let mine: Kernel.BrowserCreateResponse;
  let other: Kernel.BrowserCreateResponse;
  const init = new Map<string, number>();
  /** On the host: a file that everybody may read, a listener, and sockets of both kinds. */
  let hostDir: string;
  const listeners: Server[] = [];
  let hostPort: number;
  let web: http.Server;
  let webPort: number;
  const visited: string[] = [];

  beforeAll(async () => {
    web = http.createServer((request, response) => {
      visited.push(request.url ?? '');
      response.setHeader('access-control-allow-origin', '*');
      response.end(SECRET);
    });
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    webPort = (web.address() as AddressInfo).port;
    pages = await startPages({
      '/refresh': `<meta http-equiv=refresh content="0;url=http://127.0.0.1:${webPort}/refreshed">`,
    });
    process.env['CORRAL_TEST_SECRET'] = SECRET;
    service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
    const sdk = service.sdk();
    [mine, other] = await Promise.all([
      sdk.browsers.create({ headless: true }),
      sdk.browsers.create({ headless: false }),
    ]);
    for (const { session_id } of [mine, other]) {
      const held = await service.app.sessions.hold(session_id); // not given back: they stay awake for these tests
      init.set(session_id, held.engine.browser.init!);
    }

    hostDir = mkdtempSync(join(tmpdir(), 'corral-host-'));
    chmodSync(hostDir, 0o777);
    writeFileSync(join(hostDir, 'open'), SECRET, { mode: 0o666 });
    for (const at of [{ host: '127.0.0.1', port: 0 }, join(hostDir, 'socket'), `\0corral-host-${process.pid}`]) {
      const server = createServer((socket) => socket.on('error', () => {}).end(SECRET));
      server.listen(at);
      await once(server, 'listening');
      listeners.push(server);
    }
    chmodSync(join(hostDir, 'socket'), 0o777);
    hostPort = (listeners[0]!.address() as AddressInfo).port;

    // And in the other session: a file, an open port, and sockets.
    await inside('echo $0 >~/secret; echo $0 >/tmp/secret; echo $0 >/dev/shm/secret', other, SECRET);
    await inside(listen('Listen=>5,LocalAddr=>"127.0.0.1",LocalPort=>4321', 'INET'), other);
    await inside(listen('Listen=>5,Local=>"/tmp/socket"', 'UNIX'), other);
    await inside(listen('Listen=>5,Local=>"\\0corral-other"', 'UNIX'), other);
  });
  afterAll(async () => {
    delete process.env['CORRAL_TEST_SECRET'];
    for (const server of [...listeners, web]) server?.close();
    if (service) await expectNothingLeft(service); // processes started inside ended with their session
    await service?.close();
    await pages?.close();
    rmSync(hostDir, { recursive: true, force: true });
  });

  /** Runs a shell in a session's namespaces as its user; answers with all it said, and never throws. */
  const inside = (script: string, session = mine, ...args: string[]) =>
    run(enter(init.get(session.session_id)!, ['sh', '-c', script, ...args]));
  /** The same with a view of what every process of the session holds. */
  const allSeeing = (script: string, ...args: string[]) =>
    run(unfiltered(enter(init.get(mine.session_id)!, ['sh', '-c', script, ...args])));
  async function run({ file, args: words }: { file: string; args: string[] }): Promise<string> {
    const { stdout, stderr } = await promisify(execFile)(file, words, { timeout: 20_000 }).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return `${stdout}${stderr}`.trim();
  }

  /** Listens in the background, for as long as the session is there. */
  const listen = (how: string, kind: 'INET' | 'UNIX') =>
    `perl -MIO::Socket::${kind} -e '$s = IO::Socket::${kind}->new(${how}) or die $!; exit if fork; close STDOUT; close STDERR; while ($c = $s->accept) { print $c "${SECRET}"; close $c }'`;
  const reach = (port: number, session = mine) =>
    inside(
      `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>${port},Timeout=>2); print $s ? "open: " . <$s> : "closed"'`,
      session,
    );
  const reachUnix = (path: string, session = mine) =>
    inside(
      `perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer=>"${path}"); print $s ? "open: " . <$s> : "closed"'`,
      session,
    );
  /** Says a line of HTTP to the session's gateway and answers with what comes back. */
  const gateway = (line: string, headers = '') =>
    allSeeing(
      `printf '%s HTTP/1.1\\r\\n%sConnection: close\\r\\n\\r\\n' "$0" "$1" | perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>3128,Timeout=>5) or die; print $s join("", <STDIN>); print while <$s>'`,
      line,
      headers,
    );

  describe('processes', () => {
    test('of the host, the service and other sessions do not exist', async () => {
      const names = (await inside('cat /proc/[0-9]*/comm 2>/dev/null | sort -u')).split('\n');
      expect(names.filter((name) => !/^(bwrap|sh|cat|sort|env|headless_shell|chrom|ThreadPool)/.test(name))).toEqual(
        [],
      );
      const commands = await inside('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "');
      expect(commands).not.toMatch(/postgres|vitest|Xvnc|node /);
      expect(await inside('ls -d /proc/[0-9]* | wc -l').then(Number)).toBeLessThan(40);
    });

    test('cannot be signalled or traced by their number', async () => {
      for (const pid of [process.pid, process.ppid, init.get(other.session_id)!]) {
        // Inside, the number has no process, or a process of the session itself.
        expect(await inside(`readlink /proc/${pid}/exe; kill -0 ${pid}`)).toMatch(/No such process|^$/);
      }
      // Process 1 inside is root's or protected: neither signals nor tracing reach it.
      expect(await inside('kill -9 1; kill -0 1 && echo alive; cat /proc/1/comm')).toContain('bwrap');
      expect(await inside('cat /proc/1/mem | head -c 1 | wc -c')).toMatch(/Permission denied|Input\/output error|^0/);
    });

    test('hold no descriptor of the host', async () => {
      const links = await allSeeing(
        // Chromium keeps /proc open for its own sandbox; it is this one, not the host's.
        'for f in /proc/[0-9]*/fd/*; do [ "$(stat -Lc %d "$f")" = "$(stat -c %d /proc)" ] || readlink "$f"; done 2>/dev/null | sort -u',
      );
      const foreign = links
        .split('\n')
        .filter(
          (link) =>
            !/^(pipe:|socket:|anon_inode:|\/dev\/|\/proc\/|\/home\/corral|\/tmp|\/usr\/|\/memfd:|\/run\/corral|\/etc\/fonts|\/var\/cache\/fontconfig)/.test(
              link,
            ),
        );
      expect(foreign).toEqual([]);
    });

    test('see no secret in any environment', async () => {
      const everything = await allSeeing('env; cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"');
      expect(everything).toContain('DBUS_SESSION_BUS_ADDRESS'); // it was looked at
      expect(everything).not.toContain(SECRET);
      expect(everything).not.toMatch(/CORRAL_|SECRET|KEY=|TOKEN|DATABASE/);
      expect(everything).not.toContain(service.dataDir);
    });

    test('gain nothing from setuid programs, capabilities or user namespaces', async () => {
      // Setuid programs are there and count for nothing: no mount honours the bit, and no process may gain by it.
      expect(await inside(`awk '$6 !~ /(^|,)nosuid(,|$)/ { print $5 }' /proc/self/mountinfo; echo looked`)).toBe(
        'looked',
      );
      expect(await inside('mount -t tmpfs none /tmp')).toMatch(/permission|superuser|denied/i);
      expect(await inside('su -c id </dev/null')).not.toContain('uid=0');
      expect(await inside('grep -E "^(NoNewPrivs|CapEff|CapPrm|CapAmb|CapBnd)" /proc/self/status')).toMatch(
        /CapPrm:\s0+\n[\s\S]*CapEff:\s0+\n[\s\S]*NoNewPrivs:\s1/,
      );
      // Root of a user namespace of one's own is root over nothing of ours, and makes no other namespace.
      const asRoot = (script: string) => inside(`unshare --user --map-root-user sh -c '${script}'`);
      for (const kind of ['mount', 'net', 'pid', 'ipc', 'uts', 'cgroup'])
        expect(await asRoot(`unshare --${kind} true && echo made`), kind).toMatch(/not permitted/);
      expect(await asRoot('id -u')).toBe('0');
      expect(await asRoot('mount -o remount,rw /usr && echo written')).not.toContain('written');
      expect(await asRoot('mount -o remount,rw,bind /etc && echo x >/etc/passwd && echo written')).not.toContain(
        'written',
      );
      expect(await asRoot('umount /usr && echo gone')).not.toContain('gone');
      expect(await asRoot('umount -l /proc && ls /proc')).not.toMatch(/\d/);
      expect(await asRoot('mknod /tmp/disk b 8 0 && echo made')).not.toContain('made');
      expect(await asRoot('nsenter --target 1 --mount --net true && echo entered')).not.toContain('entered');
      expect(await asRoot('chroot /proc/1/root id && echo out')).not.toContain('out\n');
      expect(
        await asRoot('mount -t cgroup none /tmp && echo mounted; mount -t sysfs none /tmp && ls /tmp/fs/cgroup'),
      ).not.toMatch(/mounted|corral/);
    });
  });

  test.runIf(isolation.cgroups?.controllers.includes('pids'))(
    'one cannot start more processes than the session may have',
    async () => {
      const group = groupsOf(init.get(mine.session_id)!).find((path) => existsSync(join(path, 'pids.max')))!;
      const most = readFileSync(join(group, 'pids.max'), 'utf8');
      expect(Number(most)).toBeGreaterThan(0); // a number, not `max`
      // A small bomb under a small bound: the same limit, lowered from outside. The browser's threads count too, and may end meanwhile.
      const bound = Number(readFileSync(join(group, 'pids.current'), 'utf8')) + 30;
      writeFileSync(join(group, 'pids.max'), String(bound));
      const bomb = `$n = 0; while ($n < ${bound + 100}) { $pid = fork; last unless defined $pid; unless ($pid) { close STDOUT; close STDERR; sleep 2; exit } $n++ } print $n`;
      const started = Number(await inside(`perl -e '${bomb}'`));
      writeFileSync(join(group, 'pids.max'), most);
      expect(started).toBeGreaterThan(0);
      expect(started).toBeLessThan(bound);
      expect(await inside('echo fine', other)).toBe('fine');
    },
  );

  describe('files', () => {
    test('of the host, the data directory and other sessions are not there', async () => {
      for (const path of [
        service.dataDir,
        join(service.dataDir, 'api-key'),
        join(service.dataDir, 'sessions', other.session_id),
        join(hostDir, 'open'),
        '/root',
        '/etc/shadow',
        '/etc/ssl/private',
        '/sys',
        '/mnt',
        '/boot',
        '/var/lib',
        '/var/log',
        '/run/docker.sock',
        '/run/dbus',
        process.cwd(),
      ]) {
        expect(await inside('ls -ld "$0"', mine, path), path).toMatch(/No such file/);
        expect(await inside('ls -ld "/proc/1/root$0" "/proc/self/root$0"', mine, path), path).not.toMatch(/^[-d]/m);
      }
      expect(await inside('grep -rl "$0" /home /tmp /run /var /etc /dev/shm 2>/dev/null', mine, SECRET)).toBe('');
      expect(await inside('cat ~/secret', other)).toBe(SECRET);
    });

    test('of the system are read-only, and devices are the harmless ones', async () => {
      for (const path of [
        '/usr/x',
        '/usr/bin/x',
        '/etc/x',
        '/etc/passwd',
        '/x',
        '/dev/x',
        '/proc/sys/kernel/hostname',
        '/var/x',
        '/etc/chromium/policies/managed/x.json',
      ]) {
        expect(await inside('echo x >"$0" && echo written', mine, path), path).not.toContain('written');
      }
      const devices = (await inside('find /dev -type b -o -type c | sort')).split('\n');
      expect(
        devices.filter((path) => !/^\/dev\/(console|full|null|ptmx|pts\/.*|random|tty|urandom|zero)$/.test(path)),
      ).toEqual([]);
      expect(await inside('cat /proc/kcore /proc/kmsg /dev/mem 2>&1 | head -c 200')).toMatch(
        /denied|No such file|not permitted/,
      );
    });

    test('a page can open by file: are the sandbox’s own', async () => {
      await visit(async (page) => {
        await page.goto('file:///etc/passwd');
        expect((await page.textContent('body'))!.trim().split('\n')).toHaveLength(2);
        for (const path of [
          '/etc/shadow',
          '/root/',
          join(service.dataDir, 'api-key'),
          join(hostDir, 'open'),
          '/proc/1/environ',
        ]) {
          const answer = await page.goto(`file://${path}`).then(
            () => page.textContent('body'),
            () => 'refused',
          );
          expect(answer, path).not.toContain(SECRET);
          expect(answer, path).toMatch(/^(refused|)$/);
        }
      });
    });
  });

  describe('the network', () => {
    test('does not reach the host, the service, or another session', async () => {
      expect(await reach(hostPort)).toBe('closed');
      expect(await reach(Number(new URL(service.url).port))).toBe('closed');
      expect(await reach(webPort)).toBe('closed');
      expect(await reach(4321)).toBe('closed');
      expect(await reach(4321, other)).toBe(`open: ${SECRET}`); // it is there, but not for others
      expect(await inside('tail -n +2 /proc/net/tcp /proc/net/tcp6 | grep -c " 0A "')).toBe('1'); // the gateway
      expect(await inside('tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " " | sort | xargs')).toBe('lo v0 v1');
    });

    test('sockets of the host and of other sessions cannot be connected to', async () => {
      expect(await reachUnix(join(hostDir, 'socket'))).toBe('closed');
      expect(await reachUnix(`\\0corral-host-${process.pid}`)).toBe('closed');
      expect(await reachUnix('/tmp/socket')).toBe('closed');
      expect(await reachUnix('\\0corral-other')).toBe('closed');
      expect(await reachUnix('/tmp/socket', other)).toBe(`open: ${SECRET}`);
      expect(await reachUnix('\\0corral-other', other)).toBe(`open: ${SECRET}`);
      expect(await inside('cat /proc/net/unix')).not.toMatch(/corral-(host|other)|X11-unix/);
    });

    test('out of the gateway reaches no address of this machine, in any spelling', async () => {
      const { port } = new URL(service.url);
      for (const to of [port, String(hostPort), String(webPort)]) {
        for (const host of [
          '127.0.0.1',
          '127.0.0.1.',
          'localhost',
          'LOCALHOST.',
          'x.localhost',
          '127.1',
          '0x7f.1',
          '2130706433',
          '0',
          '0.0.0.0',
          '[::1]',
          '[::]',
          '[::ffff:127.0.0.1]',
        ]) {
          // A tunnel to the service's own address leads to the session's CDP address only: see below.
          const connect = `${host}:${to}` === `127.0.0.1:${port}` ? '' : await gateway(`CONNECT ${host}:${to}`);
          if (connect !== '') expect(connect, `CONNECT ${host}:${to}`).toMatch(/^HTTP\/1\.1 403 /);
          const get = await gateway(`GET http://${host}:${to}/gateway`, 'Host: example.com\r\n');
          expect(get, `GET ${host}:${to}`).toMatch(/^HTTP\/1\.1 403 [\s\S]*X-Corral-Egress: destination_refused/i);
          expect(get).not.toContain(SECRET);
        }
      }
      expect(visited).toEqual([]);
      expect(await gateway(`GET ${pages.url}`)).toMatch(/^HTTP\/1\.1 200 [\s\S]*A page/);
    });
  });

  describe('a page', () => {
    test('that goes to the service, or to a loopback address under any name, sees why it may not', async () => {
      const { port } = new URL(service.url);
      await visit(async (page) => {
        for (const url of [
          `http://127.0.0.1:${port}/health`,
          `http://localhost:${port}/health`,
          `http://127.0.0.1.:${webPort}/`,
          `http://a.localhost:${webPort}/`,
        ]) {
          const answer = await page.goto(url);
          expect(answer!.status(), url).toBe(403);
          expect(await page.textContent('body'), url).toMatch(/off limits/);
        }
        await expect(page.goto(`https://localhost:${port}/`)).rejects.toThrow('ERR_TUNNEL_CONNECTION_FAILED');
        await expect(page.goto(`https://127.0.0.1:${port}/`)).rejects.toThrow('net::ERR_');
      });
      expect(visited).toEqual([]);
    });

    test('opens the CDP address of its own session, and no other address, path, token or port of the service', async () => {
      const own = new URL(mine.cdp_ws_url);
      const token = own.searchParams.get('jwt')!;
      const changed = (change: (url: URL) => void) => {
        const url = new URL(own);
        change(url);
        return url.href;
      };
      const process = await service.sdk().browsers.process.spawn(mine.session_id, { command: 'sleep', args: ['600'] });
      const refused = {
        'another session': other.cdp_ws_url,
        'a token for another purpose': changed((url) =>
          url.searchParams.set('jwt', new URL(mine.browser_live_view_url!).searchParams.get('jwt')!),
        ),
        'no token': changed((url) => url.searchParams.delete('jwt')),
        'a forged token': changed((url) => url.searchParams.set('jwt', `${token.slice(0, -4)}AAAA`)),
        'another host': changed((url) => (url.hostname = 'localhost')),
        'another port': changed((url) => (url.port = String(webPort))),
        'its WebDriver address': mine.webdriver_ws_url,
        'its live view': `ws://${own.host}/browser/live/socket?jwt=${new URL(mine.browser_live_view_url!).searchParams.get('jwt')}`,
        'its base_url': `${mine.base_url!.replace(/^http/, 'ws')}/devtools/browser/any`,
        'its process': `${mine.base_url!.replace(/^http/, 'ws')}/process/${process.process_id}/attach`,
        'a path that is written otherwise': changed((url) => (url.pathname = '/browser//cdp')),
      };
      await visit(async (page) => {
        await page.goto(pages.url);
        /** What Browser.getVersion answers, or that the websocket was never open. */
        const ask = (url: string) =>
          page.evaluate(
            `new Promise((resolve) => {
              const socket = new WebSocket(${JSON.stringify(url)});
              socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
              socket.onmessage = ({ data }) => { resolve(data); socket.close(); };
              socket.onclose = () => resolve('closed');
            })`,
          );
        expect(await ask(own.href)).toContain('protocolVersion');
        for (const [what, url] of Object.entries(refused)) expect(await ask(url), what).toBe('closed');
        expect(await ask(own.href)).toContain('protocolVersion');
      });
      // By hand, where a client may say what it likes: the API with a good key, a claim to be a node, an upgrade of another kind.
      const { host } = own;
      const through = (request: string) => gateway(`CONNECT ${host}`, `\r\n${request}X: y\r\n`);
      const asWebSocket = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n';
      const key = `Authorization: Bearer ${service.key}\r\n`;
      for (const request of [
        `GET /browsers HTTP/1.1\r\nHost: ${host}\r\n${key}`,
        `GET /health HTTP/1.1\r\nHost: ${host}\r\n`,
        `GET ${own.pathname}${own.search} HTTP/1.1\r\nHost: ${host}\r\n`,
        `GET /browsers/${mine.session_id}/process/${process.process_id}/attach HTTP/1.1\r\nHost: ${host}\r\n${key}${asWebSocket}Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n`,
        `GET /health HTTP/1.1\r\nHost: ${host}\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n`,
      ]) {
        const answer = await through(request);
        expect(answer, request).toMatch(/^HTTP\/1\.1 200 Connection Established\r\n\r\nHTTP\/1\.1 40[03] /);
        expect(answer, request).not.toMatch(/101 Switching|session_id|"ok"/);
      }
    });

    test('reaches nothing by fetch, websocket, redirect or refresh', async () => {
      const redirect = http.createServer((_request, response) =>
        response.writeHead(302, { location: `http://127.0.0.1:${webPort}/redirected` }).end(),
      );
      // On the one address that is allowed: the pages' own server is asked for it below.
      redirect.listen(0, '127.0.0.1');
      await once(redirect, 'listening');
      const { port } = new URL(service.url);
      const own = await startService({
        CORRAL_ALLOW_PRIVATE_HOSTS: `${pages.host},127.0.0.1:${(redirect.address() as AddressInfo).port}`,
      });
      const browser = await chromium.connectOverCDP((await own.sdk().browsers.create({ headless: true })).cdp_ws_url);
      const page = browser.contexts()[0]!.pages()[0]!;
      try {
        const answer = await page.goto(`http://127.0.0.1:${(redirect.address() as AddressInfo).port}/`);
        expect(answer!.status()).toBe(403);
        expect(answer!.url()).toBe(`http://127.0.0.1:${webPort}/redirected`);

        await page.goto(pages.url);
        const fetched = (url: string) =>
          page.evaluate(`fetch(${JSON.stringify(url)}).then((answer) => answer.text(), (error) => error.name)`);
        for (const url of [
          `http://127.0.0.1:${webPort}/fetched`,
          `http://localhost:${webPort}/fetched`,
          `http://127.0.0.1:${port}/health`,
        ]) {
          expect(await fetched(url), url).not.toContain(SECRET);
          expect(await fetched(url), url).not.toContain('"ok"');
        }
        const closed = `new Promise((resolve) => { const socket = new WebSocket('ws://127.0.0.1:${webPort}/socket'); socket.onopen = () => resolve('open'); socket.onclose = () => resolve('closed'); })`;
        expect(await page.evaluate(closed)).toBe('closed');

        await page.goto(`${pages.url}refresh`);
        await page.waitForURL('**/refreshed');
        expect(await page.textContent('body')).toMatch(/off limits/);
        expect(visited).toEqual([]);
      } finally {
        await browser.close();
        await own.close();
        redirect.closeAllConnections();
        redirect.close();
      }
    });

    test('of the browser itself does not reach out either', async () => {
      await visit(async (page, browser) => {
        for (const url of [
          'chrome://version',
          'chrome://gpu',
          'chrome://net-export',
          'view-source:http://127.0.0.1:' + webPort,
        ]) {
          await page.goto(url).catch(() => {});
        }
        expect(browser.isConnected()).toBe(true);
      }, other);
      expect(visited).toEqual([]);
    });
  });

  async function visit<T>(look: (page: Page, browser: Browser) => Promise<T>, session = mine): Promise<T> {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = await browser.contexts()[0]!.newPage();
    const own = await page.context().newCDPSession(page);
    const { targetInfo } = await own.send('Target.getTargetInfo');
    const root = await browser.newBrowserCDPSession();
    try {
      return await look(page, browser);
    } finally {
      // Chromium answers that it closes a page, and forgets it, when an error page is about to be shown. The command is repeated until the page is closed.
      const again = setInterval(() => {
        root.send('Target.closeTarget', { targetId: targetInfo.targetId }).catch(() => {});
      }, 500);
      await page.close();
      clearInterval(again);
      await browser.close();
    }
  }
});
