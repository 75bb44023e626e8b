import { describe, expect, test } from 'vitest';
import { asked, cut, MOST_CHARACTERS, refuseSecrets, jsonText } from './answers.ts';
import { rank, sectionsOf } from './docs.ts';
import type { Answer, Host } from './host.ts';

const hostThat = (answer: Partial<Answer>): Host => ({
  ask: async () => ({ status: 200, headers: {}, bytes: Buffer.alloc(0), ...answer }),
  operation: () => {
    throw new Error('There is none.');
  },
  disabled: new Set(),
  version: '1',
});

describe('an answer', () => {
  test('has no address with a token in it, at any depth', () => {
    const { text } = jsonText({ a: [{ cdp_ws_url: 'ws://x?jwt=1', name: 'n' }] }) as { text: string };
    expect(JSON.parse(text)).toEqual({ a: [{ name: 'n' }] });
  });

  test('is bounded, and says how to read on', () => {
    const text = cut('x'.repeat(MOST_CHARACTERS + 5), 'Ask for less.');
    expect(text.length).toBeLessThan(MOST_CHARACTERS + 100);
    expect(text).toMatch(/5 more characters\. Ask for less\.$/);
  });

  test.each([
    [404, /\(gone\) Call the tool's list action/],
    [403, /do not try again/],
    [503, /Wait some seconds/],
  ])('of status %i says what to do next', async (status, words) => {
    const bytes = Buffer.from(JSON.stringify({ code: 'gone', message: 'It is gone.' }));
    await expect(asked(hostThat({ status, bytes }), { method: 'GET', path: '/' })).rejects.toThrow(words);
  });

  test('of a proxy in between is passed on unchanged', async () => {
    const bytes = Buffer.from('<h1>Bad gateway</h1>');
    await expect(asked(hostThat({ status: 502, bytes }), { method: 'GET', path: '/' })).rejects.toThrow('Bad gateway');
  });
});

test.each([{ password: 'x' }, { config: { proxy_password: 'x' } }, { values: {} }, { list: [{ access_token: 'x' }] }])(
  'a secret is refused: %j',
  (given) => {
    expect(() => refuseSecrets(given)).toThrow('must not pass through a model');
  },
);

test('values that are not secrets are accepted', () => {
  expect(() => refuseSecrets({ name: 'password reset', tags: { team: 'a' }, keys: ['Return'] })).not.toThrow();
});

test('deep JSON is looked through to its end', () => {
  const deep = (inner: string) => JSON.parse('['.repeat(50_000) + inner + ']'.repeat(50_000)) as unknown;
  expect(() => refuseSecrets(deep('{"name":1}'))).not.toThrow();
  expect(() => refuseSecrets(deep('{"password":1}'))).toThrow('must not pass through a model');
});

test('a search prefers titles and rare words', () => {
  const all = sectionsOf(
    'page',
    '# Pools\nBrowsers wait here.\n## Backup\nCopy it.\n## Other\nBrowsers and a backup, browsers.',
  );
  expect(rank(all, 'backup').map(({ title }) => title)[0]).toBe('Backup');
  expect(rank(all, 'zebra')).toEqual([]);
});
