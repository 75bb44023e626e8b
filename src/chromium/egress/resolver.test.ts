import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { inHostsFile, systemResolver } from './resolver.ts';

it('reads a hosts file', () => {
  const text = '# 9.9.9.9 a\n127.0.0.1\tlocalhost a # b\n\n  ::1 a.example A\n10.0.0.1 aa\n';
  expect(inHostsFile(text, 'a')).toEqual(['127.0.0.1', '::1']);
  expect(inHostsFile(text, 'b')).toEqual([]);
});

it('asks DNS for both families, once each, and reports the error', async () => {
  const asked: string[] = [];
  const server = createSocket('udp4');
  server.on('message', (query, { port, address }) => {
    const { name, type } = question(query);
    asked.push(`${name} ${type}`);
    if (name !== 'silent.example')
      server.send(answer(query, name === 'both.example' ? addresses[type] : undefined), port, address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const servers = [`127.0.0.1:${server.address().port}`];
  const resolve = systemResolver({ servers });
  const hasty = systemResolver({ servers, seconds: 1 }); // only where no answer comes
  try {
    expect(await resolve('both.example', { trusted: false })).toEqual(['192.0.2.7', '2001:db8::7']);
    expect(asked.sort()).toEqual(['both.example 1', 'both.example 28']);
    await expect(resolve('none.example', { trusted: false })).rejects.toMatchObject({
      code: 'dns_failed',
      message: expect.stringContaining('ENOTFOUND'),
    });
    await expect(hasty('silent.example', { trusted: false })).rejects.toMatchObject({ code: 'dns_failed' });
  } finally {
    server.close();
  }
});

it('knows the names of this machine for every client', async () => {
  const resolve = systemResolver({ servers: ['127.0.0.1:9'] });
  for (const trusted of [true, false]) {
    expect(await resolve('localhost', { trusted })).toEqual(
      expect.arrayContaining([expect.stringMatching(/^(127\.|::1)/)]),
    );
  }
});

const addresses: Record<number, Buffer> = {
  1: Buffer.from([192, 0, 2, 7]),
  28: Buffer.from('20010db8000000000000000000000007', 'hex'),
};

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** One answer, or NXDOMAIN. */
function answer(query: Buffer, data: Buffer | undefined): Buffer {
  const { type, end } = question(query);
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(data ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(data ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  if (!data) return head;
  const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, record, data]);
}
