import type { Page } from 'playwright-core';
import { provideApp, type App } from './apps/index.ts';
import { person, type GalleryPage, type Outcome } from './gallery/page.ts';
import { startGallery } from './gallery/site.ts';
import { startSite, type LoginCase, type Meanwhile, type Refusal, type RunningSite } from './site.ts';

/** A running site or application to log in to. */
export interface Subject {
  name: string;
  loginUrl: string;
  allowedDomains: string[];
  values: Record<string, string>;
  totp?: string | undefined;
  ends: 'logged in' | Refusal;
  meanwhile?:
    | {
        step: Meanwhile['step'];
        optional: boolean;
        code(): string | undefined;
        choice?: RegExp;
        outside(): void;
      }
    | undefined;
  /** False: the site accepts any password. */
  knowsPasswords: boolean;
  /** False: a browser stores nothing of the login. */
  stored: boolean;
  /** Opens it in a browser and sees whether it knows its user. */
  loggedIn(page: Page): Promise<boolean>;
  endSessions?: (() => Promise<void>) | undefined;
  /** How often a password arrived; undefined when the site does not count. */
  submits?: (() => number) | undefined;
  close(): Promise<void>;
}

export async function startCase(about: LoginCase): Promise<Subject> {
  const site = await startSite(about);
  const { meanwhile } = about;
  return {
    name: about.name,
    loginUrl: site.url + (about.entry ?? '/'),
    allowedDomains: about.second === 'allowed' ? ['http://127.0.0.2'] : [],
    values: about.values ?? { username: about.account.username, password: about.account.password },
    totp: about.account.totp,
    ends: about.ends,
    ...(meanwhile
      ? {
          meanwhile: {
            step: meanwhile.step,
            optional: meanwhile.optional === true,
            code: () => meanwhile.code?.(site),
            ...(meanwhile.choice ? { choice: meanwhile.choice } : {}),
            outside: () => meanwhile.outside?.(site),
          },
        }
      : {}),
    knowsPasswords: about.anyPassword !== true,
    stored: about.notStored !== true,
    loggedIn: (page) => seenBy(site, page, site.url + (about.home ?? '/')),
    endSessions: async () => site.endSessions(),
    submits: () => site.submits,
    close: site.close,
  };
}

/** The server says whether it served something that only a user gets: a page that looks logged in is no proof. */
async function seenBy(site: RunningSite, page: Page, url: string): Promise<boolean> {
  const before = site.seen;
  await page.goto(url, { waitUntil: 'networkidle' }).catch(() => undefined);
  // A page of script asks the server who it is after it has loaded.
  for (const until = Date.now() + 3000; site.seen === before && Date.now() < until;) await page.waitForTimeout(100);
  return site.seen > before;
}

/** Undefined when the application cannot be installed here. */
export async function startApp(app: App): Promise<Subject | undefined> {
  if (!(await provideApp(app))) return undefined;
  const running = await app.start();
  return {
    name: app.name,
    loginUrl: running.loginUrl,
    allowedDomains: running.allowedDomains ?? [],
    values: running.values,
    totp: running.totp,
    ends: 'logged in',
    ...(running.choice
      ? {
          meanwhile: {
            step: 'AWAITING_INPUT',
            optional: true,
            code: () => undefined,
            choice: running.choice,
            outside: () => {},
          },
        }
      : {}),
    knowsPasswords: true,
    stored: true,
    loggedIn: running.loggedIn,
    endSessions: running.endSessions,
    close: running.close,
  };
}

/** How a login to a page of the gallery should end when it is not a success. */
const galleryRefusals: Record<Exclude<Outcome['right'], 'success'>, Refusal> = {
  external: { codes: ['external_action_required'], orWaits: 'AWAITING_EXTERNAL_ACTION' },
  captcha: { codes: ['captcha_blocked', 'bot_detected'], orWaits: 'AWAITING_EXTERNAL_ACTION' },
  locked: { codes: ['website_error', 'max_attempts_reached'] },
  maintenance: { codes: ['website_error', 'network_error'] },
  passkey: { codes: ['unsupported_auth_method'], orWaits: 'AWAITING_EXTERNAL_ACTION' },
  unsupported: { codes: ['login_form_not_found', 'unsupported_auth_method', 'navigation_confused'] },
};

/** A page that demands a change by the user after the login can only be left to a person. */
const leftToPerson: Refusal = { codes: ['unsupported_auth_method'], orWaits: 'AWAITING_INPUT' };

function endOf({ right, wrong }: Outcome): Subject['ends'] {
  if (right === 'success') return 'logged in';
  return right === 'unsupported' && wrong ? leftToPerson : galleryRefusals[right];
}

export async function startGalleryPage({ name, outcome }: GalleryPage): Promise<Subject> {
  const gallery = await startGallery();
  const { username, email, password, pin, server, tenant, code, totpSecret } = person;
  const needs = (what: NonNullable<Outcome['needs']>[number]) => outcome.needs?.includes(what) === true;
  return {
    name,
    loginUrl: `${gallery.url}/${name}`,
    allowedDomains: [],
    values: { username, email, password, pin, server, tenant },
    totp: needs('totp') ? totpSecret : undefined,
    ends: endOf(outcome),
    ...(needs('code')
      ? { meanwhile: { step: 'AWAITING_INPUT', optional: false, code: () => code, outside: () => {} } }
      : {}),
    knowsPasswords: outcome.wrong === 'credentials',
    stored: true,
    async loggedIn(page) {
      await page.goto(`${gallery.url}/${name}/home`);
      return page.url().endsWith('/home');
    },
    endSessions: async () => gallery.endSessions(),
    close: gallery.close,
  };
}
