import { expect, test } from 'vitest';
import { readConfig, unknownSettings } from './config.ts';

test('an empty environment gives the defaults', () => {
  expect(readConfig({})).toMatchObject({
    host: '127.0.0.1',
    port: 3000,
    publicUrl: '',
    databaseUrl: '',
    allowPrivateHosts: [],
  });
  expect(readConfig({}).capacity).toBeGreaterThan(0);
});

test('every mistake is said at once, with the name of the setting', () => {
  const read = () => readConfig({ CORRAL_PORT: '70000', CORRAL_MAX_SESSIONS: 'many', CORRAL_PUBLIC_URL: 'example' });
  expect(read).toThrow(/CORRAL_PORT is '70000'.*CORRAL_PUBLIC_URL.*CORRAL_MAX_SESSIONS/s);
});

test('a secret that does not fit is not repeated in the message', () => {
  expect(() => readConfig({ CORRAL_API_KEY: 'tooshort', DATABASE_URL: 'mysql://u:hunter2@h/d' })).toThrow(
    expect.objectContaining({ message: expect.not.stringMatching(/tooshort|hunter2/) }) as Error,
  );
});

test('the client can parse the address of a database', () => {
  const reading = (url: string) => () => readConfig({ DATABASE_URL: url });
  expect(reading('postgres://u:hun#ter2@h:x/d')).toThrow(/^(?!.*hun).*DATABASE_URL is not an address;.*%23/s);
  expect(reading('postgres://u:p@h:port/d')).toThrow(/DATABASE_URL is not an address/);
  for (const url of ['postgres://u:p w@h/d?sslmode=disable', 'postgresql:///d', 'postgres://u:p@/d?host=/var/run'])
    expect(reading(url)().databaseUrl).toBe(url);
});

test('a misspelt setting is named, with the nearest setting', () => {
  expect(unknownSettings({ CORRAL_PROT: '1', CORRAL_COLOUR: 'red', CORRAL_PORT: '1', PATH: '' })).toEqual([
    'CORRAL_PROT is not a setting and has no effect. Did you mean CORRAL_PORT?',
    'CORRAL_COLOUR is not a setting and has no effect.',
  ]);
});
