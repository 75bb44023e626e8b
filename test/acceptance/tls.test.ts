import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Agent, fetch } from 'undici';
import { WebSocket } from 'ws';
import { sql } from '../../src/store/sql.ts';
import { freePort } from '../support/listen.ts';
import { provideNginx, startNginx, type RunningProxy } from '../support/proxies.ts';
import { startService, type Service } from '../support/service.ts';

interface Session {
  session_id: string;
  cdp_ws_url: string;
  webdriver_ws_url: string;
}

describe.runIf(await provideNginx())('behind an nginx that ends TLS', () => {
  let nginx: RunningProxy;
  let service: Service;
  let client: Agent;
  let session: Session;
  const url = () => `https://127.0.0.1:${nginx.port}`;

  const call = (method: string, path: string, body?: object) =>
    fetch(url() + path, {
      method,
      dispatcher: client,
      headers: { authorization: `Bearer ${service.key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });

  beforeAll(async () => {
    const port = await freePort();
    nginx = await startNginx({ to: `http://127.0.0.1:${port}` });
    // From an address of its own, so that it is distinguishable from nginx.
    client = new Agent({ connect: { ca: nginx.ca! }, localAddress: '127.0.0.2' });
    service = await startService({
      CORRAL_PORT: String(port),
      CORRAL_PUBLIC_URL: url(),
      CORRAL_TRUST_PROXY: '127.0.0.1',
    });
    const made = await call('POST', '/browsers', { headless: true });
    session = (await made.json()) as Session;
  });
  afterAll(async () => {
    await client?.close();
    await service?.close();
    await nginx?.kill();
  });

  async function open(address: string) {
    const socket = new WebSocket(address, { ca: nginx.ca! });
    await once(socket, 'open');
    return {
      socket,
      async ask(question: object): Promise<unknown> {
        const answer = new Promise<unknown>((resolve) => {
          socket.on('message', (data: Buffer) => {
            const message = JSON.parse(String(data)) as { id?: number };
            if (message.id === 1) resolve(message); // the others are events
          });
        });
        socket.send(JSON.stringify({ id: 1, ...question }));
        return answer;
      },
    };
  }

  test('a session has addresses that lead through it', () => {
    const secure = `wss://127.0.0.1:${nginx.port}/`;
    expect(session.cdp_ws_url.startsWith(secure), session.cdp_ws_url).toBe(true);
    expect(session.webdriver_ws_url.startsWith(secure), session.webdriver_ws_url).toBe(true);
  });

  test('CDP goes through it, with messages of a megabyte both ways', async () => {
    const { socket, ask } = await open(session.cdp_ws_url);
    expect(await ask({ method: 'Browser.getVersion' })).toMatchObject({ result: { protocolVersion: '1.3' } });
    const { result } = (await ask({ method: 'Target.getTargets' })) as {
      result: { targetInfos: { targetId: string }[] };
    };
    const { targetId } = result.targetInfos[0]!;
    socket.send(JSON.stringify({ id: 2, method: 'Target.attachToTarget', params: { targetId, flatten: true } }));
    const sessionId = await new Promise<string>((resolve) =>
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString());
        if (message.id === 2) resolve(message.result.sessionId);
      }),
    );
    const large = 'x'.repeat(1_000_000);
    const answer = new Promise<{ result: { result: { value: string } } }>((resolve) =>
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString());
        if (message.id === 3) resolve(message);
      }),
    );
    const params = { expression: `'${large}' + '!'`, returnByValue: true };
    socket.send(JSON.stringify({ id: 3, sessionId, method: 'Runtime.evaluate', params }));
    expect((await answer).result.result.value === `${large}!`).toBe(true);
    socket.close();
    await once(socket, 'close');
  });

  test('so does WebDriver BiDi', async () => {
    const { socket, ask } = await open(session.webdriver_ws_url);
    expect(await ask({ method: 'session.status', params: {} })).toMatchObject({ type: 'success', id: 1 });
    socket.close();
    await once(socket, 'close');
  });

  test('the audit log has the address of the client, not that of nginx', async () => {
    const addresses = () =>
      service.app.store.db.rows(
        sql`select distinct client_ip from audit_log where method = 'POST' and path = '/browsers'`,
      );
    await expect.poll(addresses).toEqual([{ client_ip: '127.0.0.2' }]);
  });

  test('the end of a session reaches its clients through it', async () => {
    const { socket } = await open(session.cdp_ws_url);
    const closed = once(socket, 'close');
    expect((await call('DELETE', `/browsers/${session.session_id}`)).status).toBeLessThan(300);
    await closed;
    expect((await call('GET', `/browsers/${session.session_id}`)).status).toBe(404);
  });
});
