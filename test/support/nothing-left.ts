import { expect, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { traces } from './leftovers.ts';
import type { Service } from './service.ts';

/** What a service has of its sessions on this machine. */
export function onTheMachine(dataDir: string): string[] {
  const { sessions, directories, mounts, cgroups, processes } = traces(dataDir);
  // Mounts at the directory of all sessions belong to the operator or to a test.
  const theirs = mounts().filter((line) => line.includes(`${sessions}/`));
  return [...directories(), ...theirs, ...cgroups(), ...processes()];
}

/** Everything a service in this process holds for sessions, on the machine and in its tables; empty when nothing is left. Processes are listed only if nothing else is found. */
export async function leftovers({ app, dataDir }: Pick<Service, 'app' | 'dataDir'>): Promise<string[]> {
  const rows = await app.store.db.rows<{ id: string; state: string }>(
    sql`select id, state from sessions where state not in ('stopped', 'failed') or deleted_at is null or ended_reason is null`,
  );
  const { live, clients, spares } = app.sessions.counts();
  const held = { live, clients, headless: spares.headless, headful: spares.headful };
  const { directories, cgroups } = traces(dataDir);
  const quick = [
    ...directories(),
    ...cgroups(),
    ...rows.map(({ id, state }) => `row ${id} ${state}`),
    ...Object.entries(held).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`])),
  ];
  // Tests look again and again until nothing is left. To read all processes of the machine takes long, and this process serves meanwhile.
  return quick.length > 0 ? quick : onTheMachine(dataDir);
}

/** Deletes what a test left running, and holds the service to what it promises: then there is nothing left. */
export async function expectNothingLeft(service: Service): Promise<void> {
  const { body } = await service.call('GET', '/browsers?limit=100');
  const ids = body.map(({ session_id }: { session_id: string }) => session_id);
  await Promise.all(ids.map((id: string) => service.call('DELETE', `/browsers/${id}`)));
  await vi.waitFor(async () => expect(await leftovers(service)).toEqual([]), { timeout: 60_000, interval: 50 });
}
