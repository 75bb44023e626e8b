import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { PassThrough } from 'node:stream';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { enter } from '../src/chromium/sandbox/entry.ts';
import { spawnService } from '../test/support/process.ts';
import { residentMb } from './peers.ts';
import { median, type Row } from './rows.ts';

const rounds = 60;
const bytes = Number(process.env['BENCH_BYTES'] ?? 2 ** 30);
const mb = 1_000_000;

/** What a session's guest costs: a command beside a bare spawn in a sandbox of the same kind, and files beside `cp`. */
export async function benchInside(): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
  const service = await spawnService({ CORRAL_DATA_DIR: dir, CORRAL_WARM_SPARES: 'off' });
  try {
    const key = (await readFile(join(dir, 'api-key'), 'utf8')).trim();
    const headers = { authorization: `Bearer ${key}` };
    const agent = new http.Agent({ keepAlive: true });

    async function call(
      method: string,
      path: string,
      body?: Buffer | NodeJS.ReadableStream,
      type = 'application/json',
    ) {
      const request = http.request(service.url + path, {
        method,
        agent,
        headers: { ...headers, 'content-type': type },
      });
      if (Buffer.isBuffer(body)) request.end(body);
      else if (body) body.pipe(request);
      else request.end();
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      let [size, text] = [0, ''];
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size < 100_000) text += chunk.toString();
      }
      if (response.statusCode! >= 300) throw new Error(`${path} answered ${response.statusCode}: ${text}`);
      return { size, text };
    }
    const json = (value: object) => Buffer.from(JSON.stringify(value));

    const made = await call('POST', '/browsers', json({ headless: true, timeout_seconds: 3600 }));
    const session = `/browsers/${(JSON.parse(made.text) as { session_id: string }).session_id}`;

    const first = await timed(() => call('POST', `${session}/process/exec`, json({ command: 'true' })));
    const [ours, bare, inside]: [number[], number[], number[]] = [[], [], []];
    const { file, args } = enter(await inSession(dir), ['true']);
    for (let round = 0; round < rounds; round++) {
      ours.push(await timed(() => call('POST', `${session}/process/exec`, json({ command: 'true' }))));
      bare.push(await timed(() => run('bwrap', [...sandbox, 'true'])));
      inside.push(await timed(() => run(file, args)));
    }

    const block = Buffer.alloc(1024 * 1024, 'corral');
    const source = join(dir, 'file');
    for (let at = 0; at < bytes; at += block.length) await writeFile(source, block, { flag: 'a' });
    const path = `path=/home/corral/file`;
    let peak = 0;
    const watching = setInterval(() => (peak = Math.max(peak, residentMb(service.child.pid!))), 100);
    const copied = await timed(() => promisify(execFile)('cp', [source, `${source}-copy`]));
    const up = await timed(() => call('PUT', `${session}/fs/write_file?${path}`, blocks(block)));
    const down = await timed(() => call('GET', `${session}/fs/read_file?${path}`));
    clearInterval(watching);
    const speed = (ms: number) => bytes / mb / (ms / 1000);

    return [
      { what: 'exec of `true`, the first one', value: first, unit: 'ms', beside: 'starts the guest' },
      {
        what: 'exec of `true`',
        value: median(ours),
        unit: 'ms',
        ratio: median(ours) / median(bare),
        beside: 'spawn in bwrap',
      },
      { what: '', value: median(inside), unit: 'ms', beside: 'spawn in the same sandbox, by nsenter' },
      { what: `upload of ${bytes / 2 ** 20} MiB`, value: speed(up), unit: 'MB/s', ratio: copied / up, beside: 'cp' },
      {
        what: `download of ${bytes / 2 ** 20} MiB`,
        value: speed(down),
        unit: 'MB/s',
        ratio: copied / down,
        beside: 'cp',
      },
      { what: 'the service’s memory meanwhile, at most', value: peak, unit: 'MB' },
    ];
  } finally {
    await service.kill();
    await rm(dir, { recursive: true, force: true });
  }
}

/** Of the kind a session has. */
const sandbox = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--'];

/** Host pid of process 1 of the one session there is. */
async function inSession(dir: string): Promise<number> {
  const { stdout: init } = await promisify(execFile)('sh', [
    '-c',
    'pgrep -P "$(cat $0/sessions/*/process | cut -d" " -f1)" -x bwrap | head -1',
    dir,
  ]);
  return Number(init);
}

async function run(command: string, args: string[]): Promise<void> {
  const [code] = (await once(spawn(command, args, { stdio: 'ignore' }), 'exit')) as [number];
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function blocks(block: Buffer): NodeJS.ReadableStream {
  const stream = new PassThrough();
  void (async () => {
    for (let at = 0; at < bytes; at += block.length) if (!stream.write(block)) await once(stream, 'drain');
    stream.end();
  })();
  return stream;
}
