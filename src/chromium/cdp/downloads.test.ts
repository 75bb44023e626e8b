import { expect, test } from 'vitest';
import { meantDownloads, toDownloads } from './downloads.ts';

test('the directory that Playwright makes up becomes the session’s own, and what else it asked for stays', () => {
  const asked = { behavior: 'allowAndName', downloadPath: '/tmp/playwright-artifacts-a1B2c3', eventsEnabled: true };
  const here = { behavior: 'allow', downloadPath: toDownloads.downloadPath, eventsEnabled: true };
  expect(meantDownloads({ ...asked, browserContextId: 'x' })).toEqual({ ...here, browserContextId: 'x' });
  expect(meantDownloads({ ...asked, downloadPath: 'C:\\Temp\\playwright-artifacts-a1B2c3' })).toEqual(here);
});

test.each([
  { behavior: 'allowAndName', downloadPath: '/tmp/mine' },
  { behavior: 'allow', downloadPath: '/tmp/playwright-artifacts-a1B2c3' },
  { behavior: 'deny' },
  {},
])('what a client chose stays: %o', (asked) => expect(meantDownloads(asked)).toBe(asked));
