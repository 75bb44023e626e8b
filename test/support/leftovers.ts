import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { cgroupName } from '../../src/chromium/launch.ts';
import { tree } from '../../src/chromium/process-tree.ts';
import { sql } from '../../src/store/sql.ts';
import type { Service } from './service.ts';

const engineProcess = /^(unshare|bwrap|Xvnc|chrom|headless_shell|chromium-headl)/;

/** What a service has of its sessions on this machine: directories, mounts, cgroups and processes below `leader`. */
export function onTheMachine(dataDir: string, leader: number): string[] {
  const sessions = join(dataDir, 'sessions');
  const directories = existsSync(sessions) ? readdirSync(sessions) : [];
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(`${sessions}/`));
  const processes = tree(leader).filter((pid) => engineProcess.test(nameOf(pid)) && !isDatabase(pid));
  return [
    ...directories.map((name) => `directory ${name}`),
    ...mounts.map((line) => `mount ${line}`),
    ...cgroupsOf(sessions).map((name) => `cgroup ${name}`),
    ...processes.map((pid) => `process ${pid} ${nameOf(pid)}`),
  ];
}

/** Everything a service in this process holds for sessions, on the machine and in its tables. Empty when it is clean. */
export async function leftovers({ app, dataDir }: Pick<Service, 'app' | 'dataDir'>): Promise<string[]> {
  const rows = await app.store.db.rows<{ id: string; state: string }>(
    sql`select id, state from sessions where state not in ('stopped', 'failed') or deleted_at is null or ended_reason is null`,
  );
  const { live, clients, spares } = app.sessions.counts();
  const held = { live, clients, headless: spares.headless, headful: spares.headful };
  return [
    ...onTheMachine(dataDir, process.pid),
    ...rows.map(({ id, state }) => `row ${id} ${state}`),
    ...Object.entries(held).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`])),
  ];
}

/** Deletes what a test left running, and holds the service to what it promises: then there is nothing left. */
export async function expectNothingLeft(service: Service): Promise<void> {
  const { body } = await service.call('GET', '/browsers?limit=100');
  const ids = body.map(({ session_id }: { session_id: string }) => session_id);
  await Promise.all(ids.map((id: string) => service.call('DELETE', `/browsers/${id}`)));
  await vi.waitFor(async () => expect(await leftovers(service)).toEqual([]), { timeout: 15_000, interval: 20 });
}

function cgroupsOf(sessions: string): string[] {
  const prefix = cgroupName(join(sessions, '-')).slice(0, -1);
  const root = '/sys/fs/cgroup';
  if (!existsSync(root)) return [];
  return ['.', ...readdirSync(root)].flatMap((hierarchy) => {
    const group = join(root, hierarchy, 'corral');
    return existsSync(group) ? readdirSync(group).filter((name) => name.startsWith(prefix)) : [];
  });
}

/** The embedded PostgreSQL has a bubblewrap of its own, which stays. */
function isDatabase(pid: number): boolean {
  return readOrNothing(`/proc/${pid}/cmdline`).includes('/bin/postgres');
}

function nameOf(pid: number): string {
  return readOrNothing(`/proc/${pid}/comm`).trim();
}

/** Nothing when the process is gone by now. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
