import type { LoginCase, Site, Visit } from '../site.ts';

/** Sites of one page: a script draws what the server tells it. */

export const account = { username: 'ann.cause', password: 'Rain on 7 roofs' };

/** The script of a page, with what all of these pages use. */
export const script = (body: string) => `<script>
const el = (id) => document.getElementById(id);
const api = async (path, data, token = localStorage.getItem('token')) => {
  const headers = { 'content-type': 'application/json', ...(token ? { authorization: 'Bearer ' + token } : {}) };
  const answer = await fetch(path, data ? { method: 'POST', headers, body: JSON.stringify(data) } : { headers });
  return { status: answer.status, ...(await answer.json().catch(() => ({}))) };
};
${body}</script>`;

export const form = (button = 'Sign in') =>
  `<form id="form"><p id="error" role="alert" class="error"></p>
    <label>User name <input id="user" name="user" autocomplete="username"></label>
    <label>Password <input id="pass" name="pass" type="password" autocomplete="current-password"></label>
    <button>${button}</button></form>`;

/** A token for the user, which ends with the sessions of the site. */
export function giveToken(site: Site): string {
  const token = `t${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}`;
  site.states.set(token, { user: site.account.username });
  return token;
}

/** Whether the request has a token that is good. */
export function hasToken({ request }: Visit, site: Site): boolean {
  const token = /^Bearer (\w+)$/.exec(request.headers.authorization ?? '')?.[1];
  return token !== undefined && site.states.get(token)?.user !== undefined;
}

/** Answers a login by a script with a token. */
export function answerLogin(visit: Visit, site: Site): void {
  const right = site.knows(visit.form['user'], visit.form['pass']);
  visit.json(right ? { token: giveToken(site) } : { error: 'Wrong user name or password.' }, right ? 200 : 401);
}

/** What the API tells: only a user gets it. */
export function answerUser(visit: Visit, site: Site, data: object): void {
  if (!hasToken(visit, site)) return visit.json({ error: 'unauthorized' }, 401);
  site.seen++;
  visit.json(data);
}

export type Cause = LoginCase & { number: number };
