import { chromium, type Page } from 'playwright-core';
import { setTimeout as sleep } from 'node:timers/promises';
import { mostUnclear } from '../../../src/logins/state.ts';
import { sql } from '../../../src/store/sql.ts';
import type { Service } from '../service.ts';
import type { Subject } from './subjects.ts';

/** What GET /auth/connections/{id} answers, as far as it is looked at here. */
export interface Connection {
  id: string;
  status: 'AUTHENTICATED' | 'NEEDS_AUTH';
  flow_status: 'IN_PROGRESS' | 'SUCCESS' | 'FAILED' | 'EXPIRED' | 'CANCELED' | null;
  flow_step: string | null;
  flow_type: string | null;
  interaction_id: string | null;
  error_code: string | null;
  error_message: string | null;
  website_error: string | null;
  can_reauth: boolean;
  can_reauth_reason: string | null;
  last_auth_check_at: string | null;
  fields: { id: string; type: string; label?: string }[] | null;
  choices: { id: string; label: string; type: string }[] | null;
}

let made = 0;

/** Makes a credential, a profile and a connection for a site, by the public API. */
export async function connectTo(service: Service, subject: Subject, values = subject.values) {
  const name = `${subject.name}-${++made}`;
  await must(service, 'POST', '/credentials', {
    name,
    domain: '127.0.0.1',
    values,
    ...(subject.totp ? { totp_secret: subject.totp } : {}),
  });
  const { id } = await must<Connection>(service, 'POST', '/auth/connections', {
    domain: '127.0.0.1',
    profile_name: name,
    login_url: subject.loginUrl,
    ...(subject.allowedDomains.length > 0 ? { allowed_domains: subject.allowedDomains } : {}),
    credential: { name },
    health_check_interval: 86_400,
  });
  return { id, profile: name };
}

/** Starts a login and sees it to its end, or to where it waits for something that `subject` does not know. */
export async function logIn(service: Service, subject: Subject, id: string, patience = 180_000): Promise<Connection> {
  await must(service, 'POST', `/auth/connections/${id}/login`, {});
  const answered = new Set<string>();
  for (const until = Date.now() + patience; ; await sleep(250)) {
    const now = await look(service, id);
    if (now.flow_status !== 'IN_PROGRESS' || Date.now() > until) return now;
    if (now.flow_step !== 'AWAITING_INPUT' && now.flow_step !== 'AWAITING_EXTERNAL_ACTION') continue;
    // A question is answered once; it stays on the screen until the service has taken the answer.
    const asked = JSON.stringify([now.fields, now.choices, now.flow_step]);
    if (!answered.has(asked) && !(await respond(service, subject, now))) return now;
    answered.add(asked);
  }
}

/** False: the subject has no answer to this question. */
async function respond(service: Service, { meanwhile }: Subject, now: Connection): Promise<boolean> {
  if (!meanwhile || meanwhile.step !== now.flow_step) return false;
  const submit = (body: object) => must(service, 'POST', `/auth/connections/${now.id}/submit`, body);
  const choice = now.choices?.find(({ label }) => meanwhile.choice?.test(label));
  const field = now.fields?.find(({ type }) => type === 'code' || type === 'totp_code');
  const code = meanwhile.code();
  if (choice) await submit({ selected_choice_id: choice.id });
  else if (field && code) await submit({ field_values: { [field.id]: code } });
  else if (meanwhile.step === 'AWAITING_EXTERNAL_ACTION') meanwhile.outside();
  else return false;
  return true;
}

export const look = (service: Service, id: string) => must<Connection>(service, 'GET', `/auth/connections/${id}`);

/** Opens a session with the profile, as a user would afterwards. */
export async function isLoggedIn(service: Service, subject: Subject, profile: string): Promise<boolean> {
  return withSession(service, profile, (page) => subject.loggedIn(page));
}

async function withSession<T>(service: Service, profile: string, use: (page: Page) => Promise<T>): Promise<T> {
  const body = { headless: true, stealth: true, profile: { name: profile } };
  const session = await must<{ session_id: string; cdp_ws_url: string }>(service, 'POST', '/browsers', body);
  try {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    try {
      const context = browser.contexts()[0]!;
      return await use(context.pages()[0] ?? (await context.newPage()));
    } finally {
      await browser.close();
    }
  } finally {
    await service.call('DELETE', `/browsers/${session.session_id}`);
  }
}

/** Has the scheduled check take place now, and waits for it and for the login that may follow. */
export async function checkNow(service: Service, id: string, patience = 180_000): Promise<Connection> {
  const before = (await timeline(service, id)).length;
  await service.app.store.db.rows(sql`update auth_connections set next_check_at = now() where id = ${id}`);
  for (const until = Date.now() + patience; ; await sleep(250)) {
    const entries = (await timeline(service, id)).slice(0, -before || undefined);
    const now = await look(service, id);
    const checked = entries.find(({ type }) => type === 'health_check');
    const ended = entries.length > 0 && entries.every(({ status }) => status !== 'IN_PROGRESS');
    const again = entries.some(({ type }) => type === 'reauth');
    const last = now.status === 'NEEDS_AUTH' || again || checked?.status === 'AUTHENTICATED';
    if ((checked && ended && last) || Date.now() > until) return now;
  }
}

/** The first check of a site that ended the login, and those after it that cannot tell; with the login that follows. */
export async function checkUntilLoggedIn(service: Service, id: string, patience = 120_000): Promise<Connection> {
  const logins = async () => (await timeline(service, id)).filter(({ type }) => type === 'reauth');
  const before = (await logins()).length;
  const isOver = async () => {
    const now = await logins();
    return now.length > before && now.every(({ status }) => status !== 'IN_PROGRESS');
  };
  for (let checks = 0; checks < mostUnclear && !(await isOver()); checks++) {
    const { status } = await checkNow(service, id);
    if (status === 'NEEDS_AUTH') break;
  }
  // The login after a check that could not tell begins after the check.
  for (const until = Date.now() + patience; Date.now() < until && !(await isOver());) await sleep(250);
  return look(service, id);
}

export const timeline = (service: Service, id: string) =>
  must<{ type: string; status: string }[]>(service, 'GET', `/auth/connections/${id}/timeline?limit=100`);

export async function must<T = unknown>(service: Service, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await service.call(method, path, body);
  if (answer.status >= 400) throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.text}`);
  return answer.body as T;
}
