import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { contextsFile, findTarget, readContexts, writeContexts } from './contexts.ts';

let home: string;
let dataDir: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'corral-contexts-'));
  dataDir = join(home, 'data');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'api-key'), 'sk_local\n');
});
afterEach(() => rmSync(home, { recursive: true }));

const keep = () =>
  writeContexts(contextsFile({ HOME: home }), {
    current: 'work',
    contexts: {
      work: { url: 'https://work.example', key: 'sk_work' },
      other: { url: 'https://other.example', key: 'sk_other', project: 'shop' },
    },
  });

test('the command line has priority, then the environment, then the stored context, then this machine', () => {
  keep();
  const all = {
    HOME: home,
    CORRAL_URL: 'http://one.example/',
    CORRAL_API_KEY: 'sk_one',
    KERNEL_BASE_URL: 'http://two.example',
    KERNEL_API_KEY: 'sk_two',
  };
  const { CORRAL_URL, CORRAL_API_KEY, ...sdk } = all;
  const local = { HOME: home, CORRAL_DATA_DIR: dataDir };
  expect(findTarget(all, { context: 'other' })).toMatchObject({ key: 'sk_other', project: 'shop' });
  expect(findTarget(all, { context: 'other', project: 'store' })).toMatchObject({ project: 'store' });
  expect(findTarget(all, {})).toMatchObject({ url: 'http://one.example', key: 'sk_one' });
  expect(findTarget(sdk, {})).toMatchObject({ url: 'http://two.example', key: 'sk_two' });
  expect(findTarget(local, {})).toMatchObject({ url: 'http://127.0.0.1:3000', key: 'sk_local', context: 'local' });
  expect(findTarget({ HOME: home }, {})).toMatchObject({ key: 'sk_work', context: 'work' });
  expect(findTarget({ ...all, CORRAL_DATA_DIR: dataDir }, { context: 'local' })).toMatchObject({ context: 'local' });
  expect([CORRAL_URL, CORRAL_API_KEY]).toEqual(['http://one.example/', 'sk_one']);
});

test('a running service writes its address', () => {
  writeFileSync(join(dataDir, 'address'), 'http://127.0.0.1:4000\n');
  expect(findTarget({ HOME: home, CORRAL_DATA_DIR: dataDir }, {})).toMatchObject({ url: 'http://127.0.0.1:4000' });
});

test('a key is only sent to the address that it was given with', () => {
  keep();
  expect(() => findTarget({ HOME: home, CORRAL_URL: 'http://one.example', KERNEL_API_KEY: 'sk_two' }, {})).toThrow(
    'CORRAL_URL is set and CORRAL_API_KEY is not',
  );
  expect(findTarget({ HOME: home, CORRAL_API_KEY: 'sk_one', KERNEL_API_KEY: 'sk_two' }, {})).toMatchObject({
    url: 'https://work.example',
    key: 'sk_work',
  });
});

test.each([
  [{ CORRAL_URL: 'localhost:3000', CORRAL_API_KEY: 'x' }, undefined, 'http:// or https://'],
  [{}, 'nowhere', "no context 'nowhere'"],
  [{ CORRAL_DATA_DIR: '/nowhere' }, undefined, 'no service in /nowhere'],
])('%j with the context %s is refused with a remedy', (env, context, sentence) => {
  expect(() => findTarget({ HOME: home, ...env }, { context })).toThrow(sentence);
});

test('only the owner can read the file, also if it existed with another mode, and a damaged file is reported', () => {
  keep();
  const file = contextsFile({ HOME: home });
  chmodSync(file, 0o644);
  writeContexts(file, readContexts(file));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(file, '{');
  expect(() => readContexts(file)).toThrow(`${file} cannot be read`);
});
