import { expect, onTestFinished, test, vi } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { orgStore } from '../org/store.ts';
import { appStore } from './app-store.ts';
import { deploymentStore } from './store.ts';

async function appsOf(actions: number, names: Record<string, string[]>) {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const { db } = store;
  await orgStore(db).ensureDefaultProject('proj');
  const apps = appStore(db);
  for (const [id, env_names] of Object.entries(names)) {
    await deploymentStore(db).insert(newDeployment({ id, env_names }));
    for (const name of ['a', 'b', 'c'])
      await apps.give({
        id: `${id}-${name}`,
        project_id: 'proj',
        app_name: `${id}-${name}`,
        version: 'latest',
        deployment_id: id,
        actions: Array.from({ length: actions }, (_, n) => ({ name: `run ${n} ${'x'.repeat(200)}` })),
      });
  }
  return { db, apps };
}

test('large apps of a deployment are read one at a time', async () => {
  const { apps } = await appsOf(200, { one: ['A'] });
  const seen: string[][] = [];
  for (let rows = await apps.of('one'); rows.length > 0; rows = await apps.of('one', rows.at(-1)!.app_name))
    seen.push(rows.map(({ app_name: name, env_names: names }) => `${name} ${names.join()}`));
  expect(seen).toEqual([['one-a A'], ['one-b A'], ['one-c A']]);
});

test('lists read the names of variables once for all apps of a deployment, and wait in the line of searches', async () => {
  const names = { one: ['A', 'with "quotes", commas\\'], two: [] as string[] };
  const { db, apps } = await appsOf(1, names);
  const page = vi.spyOn(db, 'page');
  const { rows, cut } = await apps.list('proj', { limit: 100, offset: 0 });
  expect(page).toHaveBeenCalledOnce();
  expect(cut).toBe(false);
  expect(rows).toHaveLength(6);
  for (const found of [rows, await apps.of('one')]) {
    for (const row of found) expect(row.env_names).toEqual(names[row.deployment_id as keyof typeof names]);
    const [first, ...others] = found.filter(({ deployment_id: id }) => id === 'one');
    for (const other of others) expect(other.env_names).toBe(first!.env_names);
  }
  expect((await apps.of('one')).map(({ app_name: name }) => name)).toEqual(['one-a', 'one-b', 'one-c']);
});
