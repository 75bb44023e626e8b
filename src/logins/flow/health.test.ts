import { describe, expect, test } from 'vitest';
import { good, login, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import {
  choice,
  scriptedSite,
  step,
  type Script,
  type ScriptedPage,
} from '../../../test/support/logins/scripted-site.ts';
import { checkWith } from './health.ts';
import type { Recipe } from './types.ts';

const controls = ['Orders', 'Invoices', 'Settings', 'Reports', 'Team'];
const form: ScriptedPage = { url: `${origin}/login`, reading: { kind: 'login', ...login } };

/** What a login on this site leaves. `home` is the page after it, `entry` what the login address shows then. */
async function recipeOf(home: ScriptedPage, entry: 'home' | 'login'): Promise<Recipe> {
  const script = shop({ home });
  const route = (url: string, isIn: boolean) =>
    !isIn || (url.endsWith('/login') && entry === 'login') ? 'login' : 'home';
  script.route = (url, site) => route(url, site.submits.length > 0);
  const { outcome } = await run({
    script,
    values: good,
    input: { connection: { id: 'con_1', domain: 'shop.example', allowedDomains: [], loginUrl: `${origin}/login` } },
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', recipe: { success: { entrySays: expect.any(String) } } });
  return outcome.recipe!;
}

/** Checks a site with a sequence of pages: each address shows its next page every time that it is loaded. */
async function check(
  recipe: Recipe | undefined,
  pages: Record<string, ScriptedPage[]>,
  strangers: Record<string, ScriptedPage> = {},
) {
  const script: Script = { pages: {}, route: () => undefined };
  const loads = new Map<string, number>();
  for (const [path, list] of Object.entries(pages))
    for (const [at, page] of list.entries()) script.pages[`${path} ${at}`] = page;
  for (const [path, page] of Object.entries(strangers)) script.pages[`stranger ${path}`] = page;
  script.route = (url, { stranger }) => {
    const path = new URL(url).pathname;
    if (stranger && strangers[path]) return `stranger ${path}`;
    const list = pages[path];
    if (!list) return undefined;
    const at = Math.min(loads.get(path) ?? 0, list.length - 1);
    loads.set(path, at + 1);
    return `${path} ${at}`;
  };
  const { browser, read } = scriptedSite(script);
  return checkWith(read, {
    browser,
    connection: { id: 'con_1', domain: 'shop.example', allowedDomains: [], postLoginUrl: `${origin}/home` },
    recipe,
    signal: new AbortController().signal,
    patience: 1,
  });
}

const signedIn: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'signed_in' }, shows: controls };
const wordless: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'unknown' }, shows: controls };

describe('a check of a site that shows a way out', () => {
  const shell: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'signed_in' }, shows: ['Settings'] };
  const bare: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'unknown' }, texts: ['Wartung'] };
  const landing: ScriptedPage = {
    url: `${origin}/home`,
    reading: { kind: 'unknown' },
    shows: ['Products', 'Prices', 'About us'],
  };
  test.each<[string, 'home' | 'login', Record<string, ScriptedPage[]>, string]>([
    ['the account', 'home', { '/home': [signedIn], '/login': [signedIn] }, 'authenticated'],
    [
      'the account, and a form that is always there',
      'login',
      { '/home': [signedIn], '/login': [form] },
      'authenticated',
    ],
    ['the form', 'home', { '/home': [form], '/login': [form] }, 'needs_auth'],
    ['a page of the cache, and the form when it is loaded again', 'login', { '/home': [signedIn, form] }, 'needs_auth'],
    ['a greeting, and the form at its address again', 'home', { '/home': [signedIn], '/login': [form] }, 'needs_auth'],
    ['the frame of the application without anything in it', 'home', { '/home': [shell], '/login': [shell] }, 'unknown'],
    ['an empty frame, and the form', 'home', { '/home': [shell], '/login': [form] }, 'needs_auth'],
    [
      'that the session is over',
      'login',
      { '/home': [{ ...signedIn, texts: ['Your session has expired. Please log in again.'] }], '/login': [form] },
      'needs_auth',
    ],
    [
      'that the session is over, and nothing else',
      'home',
      { '/home': [{ ...signedIn, texts: ['会话已过期'] }], '/login': [{ ...signedIn, texts: ['会话已过期'] }] },
      'unknown',
    ],
    ['a public page without a word', 'home', { '/home': [landing], '/login': [landing] }, 'needs_auth'],
    ['a page that has nothing', 'home', { '/home': [bare], '/login': [bare] }, 'unknown'],
    ['a public page, and the form', 'home', { '/home': [landing], '/login': [form] }, 'needs_auth'],
    ['that it is forbidden', 'home', { '/home': [{ ...landing, status: 403 }], '/login': [form] }, 'needs_auth'],
    ['that it is down', 'home', { '/home': [{ ...landing, status: 500 }], '/login': [form] }, 'unknown'],
    ['nothing', 'home', {}, 'unknown'],
  ])('%s', async (_name, entry, pages, expected) => {
    expect(await check(await recipeOf(signedIn, entry), pages)).toBe(expected);
  });
});

describe('a check of a site that shows no way out', () => {
  const soft: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'unknown' }, shows: ['Siséän', 'Méi'] };
  const moved: ScriptedPage = { ...wordless, url: `${origin}/welcome` };
  test.each<[string, Record<string, ScriptedPage[]>, string]>([
    ['the same page', { '/home': [wordless], '/login': [wordless] }, 'authenticated'],
    ['another page', { '/home': [soft], '/login': [soft] }, 'unknown'],
    ['another address', { '/home': [moved], '/login': [moved] }, 'unknown'],
    ['the same page, and the form at its address again', { '/home': [wordless], '/login': [form] }, 'needs_auth'],
  ])('%s', async (_name, pages, expected) => {
    expect(await check(await recipeOf(wordless, 'home'), pages)).toBe(expected);
  });
});

test('an application that offers a login is compared by its other content', async () => {
  const offering: ScriptedPage = {
    url: `${origin}/home`,
    reading: { kind: 'entry', next: [step('entry', 'Log in on another device')] },
    shows: controls,
  };
  const recipe = await recipeOf(offering, 'home');
  expect(await check(recipe, { '/home': [offering], '/login': [offering] })).toBe('authenticated');
  expect(await check(recipe, { '/home': [{ ...offering, shows: [] }], '/login': [form] })).toBe('needs_auth');
});

test('a page that has again what the login began with has lost its login, also if nothing else is recognised', async () => {
  const door: ScriptedPage = {
    url: `${origin}/home`,
    reading: { kind: 'choice', choices: [choice('sign_in_method', 'staff'), choice('sign_in_method', 'guest')] },
    click: { staff: () => 'login' },
  };
  const script = shop({ door, login: { ...form, url: `${origin}/staff`, click: shop().pages['login']!.click! } });
  script.route = (_url, site) => (site.submits.length > 0 ? 'home' : 'door');
  const { outcome } = await run({ script, values: good, submits: [{ choiceId: 'staff' }] });
  expect(outcome).toMatchObject({ status: 'SUCCESS' });
  const unread: ScriptedPage = { ...door, reading: { kind: 'unknown', choices: door.reading.choices! } };
  expect(await check(outcome.recipe, { '/home': [signedIn], '/': [signedIn] })).toBe('authenticated');
  expect(await check(outcome.recipe, { '/home': [unread], '/': [unread] })).toBe('needs_auth');
});

test('a page by which nothing was recognised counts while strangers are shown another one', async () => {
  const plain: ScriptedPage = { url: `${origin}/home`, reading: { kind: 'unknown' }, texts: ['News'] };
  const recipe = await recipeOf(plain, 'home');
  expect(await check(recipe, { '/home': [plain], '/login': [plain] })).toBe('unknown');
  expect(await check(recipe, { '/home': [plain], '/login': [plain] }, { '/home': form })).toBe('authenticated');
});

test('without a recipe only a page that shows an account counts', async () => {
  expect(await check(undefined, { '/home': [signedIn] })).toBe('authenticated');
  expect(await check(undefined, { '/home': [wordless], '/': [wordless] })).toBe('unknown');
});
