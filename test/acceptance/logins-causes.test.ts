import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { causes } from '../support/logins/causes/index.ts';
import { checkNow, checkUntilLoggedIn, connectTo, isLoggedIn, logIn, must, timeline } from '../support/logins/drive.ts';
import type { LoginCase } from '../support/logins/site.ts';
import { startCase, type Subject } from '../support/logins/subjects.ts';
import { startService, type Service } from '../support/service.ts';

/** Sites for causes of logins that failed, and of wrong words about them, on real applications. All of them log in to one service. */

let service: Service;
beforeAll(async () => {
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1' });
});
afterAll(() => service?.close());

/** Each has a browser; more of them would only wait for the processors. */
const atOnce = 3;
let running = 0;

async function inTurn(work: () => Promise<void>): Promise<void> {
  while (running >= atOnce) await sleep(100);
  running++;
  try {
    await work();
  } finally {
    running--;
  }
}

async function at(about: LoginCase, work: (subject: Subject, id: string, profile: string) => Promise<void>) {
  await inTurn(async () => {
    const subject = await startCase(about);
    try {
      const { id, profile } = await connectTo(service, subject);
      await work(subject, id, profile);
      await must(service, 'DELETE', `/auth/connections/${id}`);
    } finally {
      await subject.close();
    }
  });
}

const entries = async (id: string) => (await timeline(service, id)).map(({ type, status }) => `${type} ${status}`);
const why = async (id: string) => {
  const { body } = await service.call('POST', `/auth/connections/${id}/explain`, {});
  return (body as { records: { decision: string }[] }).records.map(({ decision }) => decision);
};

async function mustLogIn(subject: Subject, id: string): Promise<void> {
  const { flow_status, error_code, error_message } = await logIn(service, subject, id);
  expect({ flow_status, error_code, error_message, why: flow_status === 'SUCCESS' ? [] : await why(id) }).toEqual({
    flow_status: 'SUCCESS',
    error_code: null,
    error_message: null,
    why: [],
  });
}

/** The site ends the login; the checks find that, and the login is done again. */
async function mustLogInAgain(subject: Subject, id: string): Promise<void> {
  await subject.endSessions!();
  const now = await checkUntilLoggedIn(service, id);
  expect({ now: now.status, entries: await entries(id) }).toEqual({
    now: 'AUTHENTICATED',
    entries: expect.arrayContaining(['reauth SUCCESS']),
  });
}

test.concurrent.each(causes.map((about) => [about.name, about] as const))(
  '%s: a login succeeds, is kept, is found by a check, and is done again when the site ends it',
  { timeout: 600_000 },
  async (_name, about) => {
    await at(about, async (subject, id, profile) => {
      await mustLogIn(subject, id);
      expect(await isLoggedIn(service, subject, profile)).toBe(true);
      expect(await checkNow(service, id)).toMatchObject({ status: 'AUTHENTICATED' });
      expect((await entries(id)).filter((one) => one.startsWith('reauth'))).toEqual([]);
      await mustLogInAgain(subject, id);
      expect(await isLoggedIn(service, subject, profile)).toBe(true);
    });
  },
);

const named = (name: string) => causes.find((about) => about.name === name)!;

test.concurrent.each(['early-logout', 'closed-menu'])(
  '%s: a login of a profile that is logged in succeeds, and types nothing',
  { timeout: 600_000 },
  async (name) => {
    await at(named(name), async (subject, id) => {
      await mustLogIn(subject, id);
      const submits = subject.submits!();
      await mustLogIn(subject, id);
      expect(subject.submits!()).toBe(submits);
    });
  },
);

test.concurrent.each(causes.map((about) => [about.name, about] as const))(
  '%s: a wrong password is none',
  { timeout: 600_000 },
  async (_name, about) => {
    const account = { ...about.account, password: `Not ${about.account.password}` };
    await at({ ...about, values: { username: account.username, password: account.password } }, async (subject, id) => {
      const ended = await logIn(service, subject, id);
      expect(ended).toMatchObject({ status: 'NEEDS_AUTH', error_code: 'credentials_invalid' });
      expect(subject.submits!()).toBeLessThanOrEqual(2);
    });
  },
);

test.concurrent('two-ways: the person chooses who they are', { timeout: 600_000 }, async () => {
  await at(named('two-ways'), async (subject, id) => {
    const { meanwhile: _, ...unanswered } = subject;
    const asked = await logIn(service, unanswered, id);
    expect(asked).toMatchObject({
      flow_step: 'AWAITING_INPUT',
      choices: [{ label: 'Guest account' }, { label: 'Staff access' }],
    });
  });
});
