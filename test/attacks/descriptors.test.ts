import Kernel from '@onkernel/sdk';
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tree } from '../../src/chromium/sandbox/process-tree.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

/**
 * A service that its supervisor started with descriptors open, on a file that no session may read. None of them may be open in
 * what the service starts for a session.
 */
let root: string;
let secret: string;
let service: ChildProcess;
let sdk: Kernel;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'corral-descriptors-'));
  secret = join(root, 'of-the-supervisor');
  writeFileSync(secret, 'secret');
  const settings = JSON.stringify({ CORRAL_DATA_DIR: join(root, 'data') });
  const script = ['test/support/run-ts.mjs', 'test/support/service-and-wait.ts', settings];
  const file = openSync(secret, 'r');
  const inherited = Array.from({ length: 29 }, (_, index) => ([3, 7, 30, 31].includes(index + 3) ? file : 'ignore'));
  service = spawn(process.execPath, script, { stdio: ['pipe', 'pipe', 'inherit', ...inherited] as StdioOptions });
  closeSync(file);
  const [line] = (await once(service.stdout!, 'data')) as [Buffer];
  const { url, key } = JSON.parse(String(line)) as { url: string; key: string };
  sdk = new Kernel({ apiKey: key, baseURL: url });
});
afterAll(async () => {
  const over = once(service, 'exit');
  service.stdin!.end();
  await over;
  rmSync(root, { recursive: true, force: true });
});

/** The service's own programs: the database. */
const notOfSessions = new Set(['postgres', 'flock']);

/** The programs that run below the service for sessions, each with whether it holds the secret. */
function look(seen: Map<string, boolean>): void {
  for (const pid of tree(service.pid!)) {
    if (pid === service.pid) continue;
    try {
      // A child is a copy of the service, with all that it has open, until it becomes another program.
      if (commandLine(pid) === commandLine(service.pid!)) continue;
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
      if (notOfSessions.has(name)) continue;
      const held = readdirSync(`/proc/${pid}/fd`).some((fd) => link(pid, fd) === secret);
      seen.set(name, held || (seen.get(name) ?? false));
    } catch {
      // the process has ended
    }
  }
}

const commandLine = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8');

function link(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return '';
  }
}

test('no descriptor of the service is open in a browser, display, guest, tail, recorder or archiver', async () => {
  const seen = new Map<string, boolean>();
  const watching = setInterval(() => look(seen), 20);
  const { name } = await sdk.profiles.create({ name: 'kept' });
  const { session_id: id } = await sdk.browsers.create({
    headless: false,
    timeout_seconds: 300,
    profile: { name: name!, save_changes: true },
  });
  const inside = await sdk.browsers.process.exec(id, { command: 'ls', args: ['-l', '/proc/self/fd'] });
  const listed = Buffer.from(inside.stdout_b64!, 'base64').toString();
  expect(listed).toContain('/proc/'); // it says something
  expect(listed).not.toContain('of-the-supervisor');

  await sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', 'echo line >~/app.log'] });
  const log = await sdk.browsers.logs.stream(id, { source: 'path', path: '/home/corral/app.log' });
  const { replay_id } = await sdk.browsers.replays.start(id, { framerate: 5 });
  await expect
    .poll(() => [...seen.keys()], { timeout: 60_000 })
    .toEqual(expect.arrayContaining(['tail', 'ffmpeg', 'Xvnc']));
  log.controller.abort();
  await sdk.browsers.replays.stop(replay_id, { id });
  await sdk.browsers.deleteByID(id); // packs the profile
  clearInterval(watching);
  expect([...seen].filter(([, held]) => held).map(([program]) => program)).toEqual([]);
}, 300_000);
