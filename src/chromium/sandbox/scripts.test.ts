import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startTime } from './process-tree.ts';
import { HELPER } from './scripts.ts';

/** Starts the helper, says its pid, and lives until it is killed. */
const SERVICE = `
  const { spawn } = require('node:child_process');
  const helper = spawn(process.execPath, ['-e', process.env.HELPER], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], detached: true });
  process.send({ pid: helper.pid });
  setInterval(() => {}, 1000);
`;

test.concurrent.each([
  ['at once', 0],
  ['while it starts', 40],
  ['while it hands over the socket', 80],
  ['later', 400],
])('the helper ends with a service that is killed %s', async (_, ms) => {
  const env = { ...process.env, HELPER: HELPER.replace(/\[anywhere, \d+/, "['127.0.0.1', 0") };
  const service = spawn(process.execPath, ['-e', SERVICE], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [{ pid }] = (await once(service, 'message')) as [{ pid: number }];
  const startedAt = startTime(pid);
  await new Promise((resolve) => setTimeout(resolve, ms)); // any moment has to do
  service.kill('SIGKILL');
  await expect.poll(() => startTime(pid) === startedAt, { timeout: 60_000 }).toBe(false);
});
