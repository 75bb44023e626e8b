import { afterAll, beforeAll, expect, test } from 'vitest';
import { apps } from '../support/logins/apps/index.ts';
import { checkNow, connectTo, isLoggedIn, logIn } from '../support/logins/drive.ts';
import { startApp, type Subject } from '../support/logins/subjects.ts';
import { startService, type Service } from '../support/service.ts';

/** Real applications with logins of their own. `npm run bench -- logins` has more of them, and pages of every make. */
const subjects = new Map<string, Subject>();
let service: Service;

beforeAll(async () => {
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1,127.0.0.2' });
  for (const app of apps.filter(({ name }) => name === 'django-otp' || name === 'oidc-provider')) {
    const subject = await startApp(app);
    if (subject) subjects.set(app.name, subject);
  }
}, 300_000);

afterAll(async () => {
  await service?.close();
  for (const subject of subjects.values()) await subject.close();
});

test('a connection logs in to Django with a password and a TOTP code', async (context) => {
  const subject = subjects.get('django-otp');
  if (!subject) return context.skip();
  const { id, profile } = await connectTo(service, subject);
  expect(await logIn(service, subject, id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
  expect(await isLoggedIn(service, subject, profile)).toBe(true);
}, 300_000);

test('a connection logs in through an OpenID provider on another host, and again when site and provider ended their sessions', async (context) => {
  const subject = subjects.get('oidc-provider');
  if (!subject) return context.skip();
  const { id, profile } = await connectTo(service, subject);
  expect(await logIn(service, subject, id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
  await subject.endSessions?.();
  expect(await checkNow(service, id)).toMatchObject({ status: 'AUTHENTICATED', flow_type: 'REAUTH' });
  expect(await isLoggedIn(service, subject, profile)).toBe(true);
  const wrong = await connectTo(service, subject, { ...subject.values, password: 'not this one' });
  const refused = await logIn(service, subject, wrong.id);
  expect(refused).toMatchObject({ status: 'NEEDS_AUTH', error_code: 'credentials_invalid' });
}, 300_000);
