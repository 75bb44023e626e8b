import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyring } from '../lib/seal.ts';
import { tokens } from '../lib/tokens.ts';
import { addresses } from './addresses.ts';

const id = 's'.repeat(24);
const minter = { keyId: `key_${'k'.repeat(24)}`, projectId: 'proj_1' };

function open({ sessionHosts = 'https://*.sessions.example.com', lease = null as string | null | undefined } = {}) {
  const state = { lease, lapse: undefined as 'key' | undefined };
  const keys = keyring([randomBytes(32)]);
  const opened = addresses({
    tokens: tokens(() => keys),
    publicUrl: () => 'https://browsers.example.com',
    sessionHosts,
    leaseOf: (session) => (session === id ? state.lease : undefined),
    projectOf: async () => minter.projectId,
    lapseOf: async () => state.lapse,
  });
  const admit = (url: string, path = '/json/version') => {
    const [, , token] = opened.pathAt(new URL(url).host, path).split('/').slice(1);
    return opened.admit(token, 'base');
  };
  return { ...opened, state, pass: admit };
}

test('a session has a host of its own, which replaces its base_url', async () => {
  const { of, pathAt, pass } = open();
  const { base_url } = of(id, minter);
  expect(base_url).toMatch(/^https:\/\/[a-z\d]{63}\.sessions\.example\.com$/);
  expect(await pass(base_url)).toEqual({ sessionId: id, minter, watchOnly: false });
  const { host } = new URL(base_url);
  expect(pathAt(`${host.toUpperCase()}:443`, '/json/new?x')).toMatch(/^\/browser\/kernel\/~[a-z\d]{63}\/json\/new\?x$/);
  for (const other of [undefined, 'browsers.example.com', 'sessions.example.com', 'x.sessions.example.org'])
    expect(pathAt(other, '/browsers')).toBe('/browsers');
});

test('the host of a session is good for its key, its lease and nothing else', async () => {
  const { of, pass, admit, state } = open({ lease: 'first' });
  const { base_url } = of(id, minter);
  const other = base_url.replace(/(.)\.sessions/, (_, last: string) => `${last === 'a' ? 'b' : 'a'}.sessions`);
  for (const wrong of [other, 'https://x.sessions.example.com', base_url.replace('kkk', 'jjj')])
    await expect(pass(wrong)).rejects.toMatchObject({ code: 'unauthorized' });
  await expect(admit(`~${new URL(base_url).host.split('.')[0]}`, 'cdp')).rejects.toMatchObject({
    code: 'unauthorized',
  });
  state.lapse = 'key';
  await expect(pass(base_url)).rejects.toMatchObject({ code: 'unauthorized' });
  state.lapse = undefined;
  state.lease = 'second';
  await expect(pass(base_url)).rejects.toMatchObject({ code: 'unauthorized' });
  state.lease = undefined; // the session is over, or on another node
  await expect(pass(base_url)).rejects.toMatchObject({ code: 'unauthorized' });
});

test('without the setting the token is in the path, for every host', async () => {
  const { of, pathAt, admit } = open({ sessionHosts: '' });
  const { base_url } = of(id, minter);
  expect(base_url).toMatch(/^https:\/\/browsers\.example\.com\/browser\/kernel\/[^/]+$/);
  expect(await admit(base_url.split('/').at(-1), 'base')).toMatchObject({ sessionId: id });
  expect(pathAt('x.sessions.example.com', '/browsers')).toBe('/browsers');
});
