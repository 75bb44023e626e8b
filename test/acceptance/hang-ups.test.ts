import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startService, type Service } from '../support/service.ts';

/**
 * Clients that hang up at every stage of every answer that streams out of a session, and clients that stop in the middle
 * of every body that streams into one. The session has to end all the same.
 */

let service: Service;
/** A site that says something again and again. */
const site = createServer((_request, response) => {
  const talking = setInterval(() => response.write('something\n'), 50);
  response.once('close', () => clearInterval(talking));
});
beforeAll(async () => {
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1', CORRAL_BODY_SECONDS: '3', CORRAL_MAX_SESSIONS: '10' };
  service = await startService(settings, { timings: { secondMs: 500 } });
});
afterAll(async () => {
  await service?.close();
  site.closeAllConnections();
  site.close();
});

interface Made {
  id: string;
  base: string;
}
const ask = async (method: string, path: string, body?: unknown) => {
  const answer = await service.call(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const spawn = async ({ id }: Made, script: string): Promise<string> =>
  (await ask('POST', `/browsers/${id}/process/spawn`, { command: 'sh', args: ['-c', script] })).process_id;
const again = (script: string) => `while :; do ${script}; sleep 0.1; done`;

/** Each route with what has to be there for it. Every one of them has something to say at once, and never comes to its end. */
const routes: Record<string, (made: Made) => Promise<string>> = {
  'the output of a process': async (made) =>
    `/browsers/${made.id}/process/${await spawn(made, again('echo something'))}/stdout/stream`,
  'the events of a watch': async (made) => {
    const { watch_id } = await ask('POST', `/browsers/${made.id}/fs/watch`, { path: '/tmp' });
    await spawn(made, again('echo something > /tmp/file; rm /tmp/file'));
    return `/browsers/${made.id}/fs/watch/${watch_id}/events`;
  },
  'a file that grows': async (made) => {
    await spawn(made, again('echo something >> /tmp/log'));
    return `/browsers/${made.id}/logs/stream?source=path&path=/tmp/log&follow=true`;
  },
  'the log of the browser': async ({ id }) =>
    `/browsers/${id}/logs/stream?source=supervisor&supervisor_process=chromium&follow=true`,
  'a file': async (made) => {
    await large(made);
    return `/browsers/${made.id}/fs/read_file?path=/tmp/large/file`;
  },
  'a directory as zip': async (made) => {
    await large(made);
    return `/browsers/${made.id}/fs/download_dir_zip?path=/tmp/large`;
  },
  'a directory as zstd': async (made) => {
    await large(made);
    return `/browsers/${made.id}/fs/download_dir_zstd?path=/tmp/large`;
  },
  'an answer that the browser fetched': async ({ base }) => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
    return `${new URL(base).pathname}/curl/raw?url=${encodeURIComponent(url)}`;
  },
};

/** More than any buffer on its way holds, and not to be packed. */
const large = ({ id }: Made) =>
  ask('POST', `/browsers/${id}/process/exec`, {
    command: 'sh',
    args: ['-c', 'mkdir /tmp/large; head -c 64M /dev/urandom > /tmp/large/file'],
  });

/** Asks for an address, and does not read what comes. Resolves when the service has the request. */
async function request(path: string) {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => {});
  await once(socket, 'connect');
  const theirs = new Promise<Socket>((resolve) => {
    const { server } = service.app.http;
    const look = (request: IncomingMessage) => {
      if (request.socket.remotePort !== socket.localPort) return;
      server.off('request', look);
      resolve(request.socket);
    };
    server.on('request', look);
  });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
  const far = await theirs;
  return {
    socket,
    /** Resolves when the service has noticed. */
    async hangUp() {
      const noticed = far.closed ? undefined : new Promise((resolve) => far.once('close', resolve));
      socket.destroy();
      await noticed;
    },
  };
}

test.concurrent.for(Object.entries(routes))(
  'a client of %s that hangs up while the session wakes, before the first byte or in the middle leaves a session that idles out',
  { timeout: 300_000 },
  async ([, prepare], { expect }) => {
    const { session_id: id, base_url: base } = await ask('POST', '/browsers', { headless: true, timeout_seconds: 10 });
    const path = await prepare({ id, base });
    const session = service.app.sessions.running(id)!;

    let wake!: () => void;
    const asleep = new Promise<void>((resolve) => (wake = resolve));
    const sleeping = session.still(() => asleep); // no request gets further than to wake it
    const early = await request(path);
    await early.hangUp();
    wake();
    await sleeping;

    await (await request(path)).hangUp();

    const late = await request(path);
    let read = '';
    for await (const chunk of late.socket) {
      read = (read + String(chunk)).slice(-1_000_000);
      if (read.includes('\r\n\r\n')) break; // the head has come, and of most the first bytes
    }
    expect(read).toMatch(/^HTTP\/1.1 200/);
    await late.hangUp();

    await expect
      .poll(() => service.call('GET', `/browsers/${id}?include_deleted=true`), { timeout: 60_000, interval: 500 })
      .toMatchObject({ body: { ended_reason: 'idle' } });
  },
);

const file = (name: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"; filename="f"\r\nContent-Type: text/plain\r\n\r\nhalf`;
const octets = 'application/octet-stream';
const form = 'multipart/form-data; boundary=b';

/** Requests whose bodies stop in the middle. */
const stalling: Record<string, (made: Made) => { method: string; path: string; type: string; body: string }> = {
  'a file': ({ id }) => ({
    method: 'PUT',
    path: `/browsers/${id}/fs/write_file?path=/home/corral/file`,
    type: octets,
    body: 'half',
  }),
  'several files': ({ id }) => ({
    method: 'POST',
    path: `/browsers/${id}/fs/upload`,
    type: form,
    body: file('files[0][file]'),
  }),
  'a zip': ({ id }) => ({ method: 'POST', path: `/browsers/${id}/fs/upload_zip`, type: form, body: file('zip_file') }),
  'an archive': ({ id }) => ({
    method: 'POST',
    path: `/browsers/${id}/fs/upload_zstd`,
    type: form,
    body: file('archive'),
  }),
  'an extension': () => ({ method: 'POST', path: '/extensions', type: form, body: file('file') }),
  'extensions for the browser': ({ id }) => ({
    method: 'POST',
    path: `/browsers/${id}/extensions`,
    type: form,
    body: file('extensions[0][zip_file]'),
  }),
  'a request through the browser': ({ base }) => ({
    method: 'POST',
    path: `${new URL(base).pathname}/curl/raw?url=${encodeURIComponent(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)}`,
    type: octets,
    body: 'half',
  }),
  'a field of JSON': ({ id }) => ({
    method: 'POST',
    path: `/browsers/${id}/process/exec`,
    type: 'application/json',
    body: '{"command":',
  }),
};

test.concurrent(
  'a client that stops in the middle of a body is answered, and leaves a session that idles out and no file',
  async ({ expect }) => {
    const made = await ask('POST', '/browsers', { headless: true, timeout_seconds: 10 });
    const id = made.session_id as string;
    await ask('POST', `/browsers/${id}/process/exec`, { command: 'true' });
    const { hostname, port } = new URL(service.url);
    const answers = await Promise.all(
      Object.entries(stalling).map(async ([what, request]) => {
        const { method, path, type, body } = request({ id, base: made.base_url });
        const socket = connect(Number(port), hostname);
        const head = [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${service.key}`];
        socket.write(`${[...head, `Content-Type: ${type}`, 'Content-Length: 100000'].join('\r\n')}\r\n\r\n${body}`);
        const answer = Buffer.concat(await socket.toArray()).toString(); // until the service closes the connection
        return `${what}: ${/^HTTP\/1.1 \d+/.exec(answer)?.[0]} ${/"code":"(\w+)"/.exec(answer)?.[1]}`;
      }),
    );
    expect(answers).toEqual(Object.keys(stalling).map((what) => `${what}: HTTP/1.1 408 body_timeout`));
    const list = async () =>
      (await ask('GET', `/browsers/${id}/fs/list_files?path=/home/corral`)) as { name: string }[];
    await expect.poll(async () => (await list()).filter(({ name }) => /part$|^file$/.test(name))).toEqual([]);
    await expect.poll(() => readdir(join(service.dataDir, 'uploads'))).toEqual([]);
    await expect.poll(() => service.app.store.db.rows(sql`select * from storage_claims`)).toEqual([]);
    await expect
      .poll(() => service.call('GET', `/browsers/${id}?include_deleted=true`), { timeout: 60_000, interval: 500 })
      .toMatchObject({ body: { ended_reason: 'idle' } });
  },
);
