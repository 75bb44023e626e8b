import { expect, test } from 'vitest';
import { readConfig, settings } from '../config.ts';
import { settingsInForce } from './settings-in-force.ts';

const inForce = (env: NodeJS.ProcessEnv, found = {}) =>
  Object.fromEntries(settingsInForce(readConfig(env), found).map((setting) => [setting.name, setting]));

test('every setting is shown with its value, and whether that is the default', () => {
  const shown = inForce({
    CORRAL_PORT: '4000',
    CORRAL_ALLOW_PRIVATE_HOSTS: '10.0.0.1, 10.1.0.0/16',
    CORRAL_WARM_SPARES: 'headless:2',
  });
  expect(Object.keys(shown)).toEqual(Object.values(settings).map(({ name }) => name));
  expect(shown).toMatchObject({
    CORRAL_HOST: { value: '127.0.0.1', default: '127.0.0.1', is_default: true, redacted: false },
    CORRAL_PORT: { value: '4000', default: '3000', is_default: false },
    CORRAL_ALLOW_PRIVATE_HOSTS: { value: '10.0.0.1,10.1.0.0/16', is_default: false },
    CORRAL_ALLOW_UNSANDBOXED: { value: 'false', is_default: true },
    CORRAL_WARM_SPARES: { value: 'headless:2,headful:0', is_default: false },
    CORRAL_MAX_SESSIONS: { value: '', is_default: true },
    CORRAL_PROXY_CHECK_URL: { value: 'https://api.ipify.org/', is_default: true },
  });
});

test('an empty setting is shown with the detected value, and a disabled one as off', () => {
  expect(inForce({ CORRAL_PROXY_CHECK_URL: 'off' }, { maxSessions: '8', port: '1' })).toMatchObject({
    CORRAL_MAX_SESSIONS: { value: '8', is_default: true },
    CORRAL_PORT: { value: '3000', is_default: true },
    CORRAL_PROXY_CHECK_URL: { value: 'off', is_default: false },
  });
});

test('no secret is shown', () => {
  const env = {
    CORRAL_API_KEY: 'sk_hunter2hunter2hunter2',
    CORRAL_SECRET_KEY: 'hunter2',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hunter2',
    DATABASE_URL: 'postgres://ada:hunter2@db/corral?password=hunter2',
    CORRAL_NPM_REGISTRY: 'https://ada:hunter2@registry.example.com/',
    CORRAL_PROXY_CHECK_URL: 'https://check.example.com/?key=hunter2',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://hunter2@otlp.example.com',
  };
  const shown = inForce(env);
  expect(JSON.stringify(shown)).not.toContain('hunter2');
  for (const name of Object.keys(env)) expect(shown[name], name).toMatchObject({ redacted: true, is_default: false });
  expect(shown['CORRAL_API_KEY']).toMatchObject({ value: null });
  expect(shown['DATABASE_URL']).toMatchObject({ value: 'postgres://***@db/corral?password=***' });
});

test('a setting with the name of a secret is marked as secret', () => {
  const sounding = Object.values(settings).filter(({ name }) => /KEY|SECRET|TOKEN|PASSWORD|HEADERS/.test(name));
  expect(sounding.filter(({ secret }) => !secret).map(({ name }) => name)).toEqual([]);
});
