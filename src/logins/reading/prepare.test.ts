import { afterEach, expect, test, vi } from 'vitest';
import { snapshot, words } from '../../../test/support/logins/snapshot.ts';
import { prepare } from './prepare.ts';
import { read } from './read.ts';
import { learn } from './words/match.ts';

afterEach(() => vi.restoreAllMocks());

test('a prepared page is read without further work, also after other pages were prepared', async () => {
  const pageOf = (name: string) =>
    snapshot(Array.from({ length: 200 }, (_, at) => words(`${name}${at} 비밀번호 로그인 인증 코드`)));
  const [before, now] = [pageOf('before'), pageOf('now')];
  await prepare(before);
  await prepare(now);
  // More than is remembered of all pages together.
  await learn(Array.from({ length: 20_000 }, (_, at) => `other ${at}`));

  const normalized = vi.spyOn(String.prototype, 'normalize');
  read(now, { domain: 'shop.example', before, submitted: ['password'] });
  expect(normalized.mock.calls.length).toBeLessThan(20);
});
