import { expect, onTestFinished, test, vi } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { orgStore } from '../org/store.ts';
import { appStore } from './app-store.ts';
import { deploymentStore } from './store.ts';

test('lists read the names of variables once for all apps of a deployment, and wait in the line of searches', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const { db } = store;
  await orgStore(db).ensureDefaultProject('proj');
  const apps = appStore(db);
  const names = { one: ['A', 'with "quotes", commas\\'], two: [] as string[] };
  for (const [id, env_names] of Object.entries(names)) {
    await deploymentStore(db).insert(newDeployment({ id, env_names }));
    for (const name of ['a', 'b', 'c'])
      await apps.give({
        id: `${id}-${name}`,
        project_id: 'proj',
        app_name: `${id}-${name}`,
        version: 'latest',
        deployment_id: id,
        actions: [{ name: 'run' }],
      });
  }
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
