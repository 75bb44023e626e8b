import { expect, test } from 'vitest';
import { Downloads, meantDownloads } from './downloads.ts';

const incoming = '/home/corral/.cache/corral/downloads';

test.each([
  { behavior: 'allowAndName', downloadPath: '/tmp/playwright-artifacts-a1B2c3' },
  { behavior: 'allowAndName', downloadPath: 'C:\\Temp\\playwright-artifacts-a1B2c3' },
  { behavior: 'allow', downloadPath: '/Users/me/Downloads' },
  { behavior: 'allow', downloadPath: '/home/me' },
  { behavior: 'allow', downloadPath: '/home/corral/../me' },
  { behavior: 'allow', downloadPath: 'C:\\Users\\me' },
  { behavior: 'allow', downloadPath: '/home/corral/Downloads' },
  { behavior: 'allow', downloadPath: '/home/corral/Downloads/' },
  { behavior: 'default' },
])('downloads stay in the session, and the other parameters do not change: %o', (asked) =>
  expect(meantDownloads({ ...asked, eventsEnabled: true, browserContextId: 'x' })).toEqual({
    behavior: 'allowAndName',
    downloadPath: incoming,
    eventsEnabled: true,
    browserContextId: 'x',
  }),
);

test.each([
  { behavior: 'allowAndName', downloadPath: '/tmp/mine' },
  { behavior: 'allow', downloadPath: '/tmp/playwright-artifacts-a1B2c3' },
  { behavior: 'allow', downloadPath: '/home/corral/chosen' },
  { behavior: 'allowAndName', downloadPath: '/home/corral/Downloads' },
  { behavior: 'deny' },
  { behavior: 'allow' },
  {},
])('a directory of the session that a client chose is kept: %o', (asked) => expect(meantDownloads(asked)).toBe(asked));

test('a download is named once, also with several clients', async () => {
  const kept: string[] = [];
  const downloads = new Downloads(
    async ({ guid, name }) => {
      kept.push(`${guid} ${name}`);
      return `/there/${name}`;
    },
    () => {},
  );
  downloads.begun('a', 'one.txt');
  const paths = await Promise.all([downloads.complete('a'), downloads.complete('a'), downloads.complete('b')]);
  expect(paths).toEqual(['/there/one.txt', '/there/one.txt', '/there/download']);
  expect(kept).toEqual(['a one.txt', 'b download']);
});
