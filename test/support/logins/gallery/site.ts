import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { around } from './pages/around.ts';
import { barred } from './pages/barred.ts';
import { classic } from './pages/classic.ts';
import { demanding } from './pages/demanding.ts';
import { scripted } from './pages/scripted.ts';
import { steps } from './pages/steps.ts';
import { isPerson, knows, type Answer, type GalleryPage, type Screen, type View, type Visit } from './page.ts';

export const galleryPages: readonly GalleryPage[] = [
  ...classic,
  ...steps,
  ...scripted,
  ...around,
  ...demanding,
  ...barred,
];

/** After so many refusals a visitor's account is locked, as usual. */
const MOST_FAILURES = 5;

const wayOut: Record<string, string> = {
  en: 'Log out',
  de: 'Abmelden',
  fr: 'Se déconnecter',
  es: 'Cerrar sesión',
  it: 'Esci',
  pt: 'Sair',
  nl: 'Uitloggen',
  pl: 'Wyloguj się',
  tr: 'Çıkış yap',
  ru: 'Выйти',
  ja: 'ログアウト',
  zh: '退出登录',
  cs: 'Odhlásit se',
  sv: 'Logga ut',
  fi: 'Kirjaudu ulos',
  ko: '로그아웃',
};

export interface Gallery {
  url: string;
  /** Logs every visitor out, on the side of the server. */
  endSessions(): void;
  close(): Promise<void>;
}

/** Serves the gallery on loopback. */
export async function startGallery(): Promise<Gallery> {
  const visits = new Map<string, Visit>();
  const server = createServer((request, response) => {
    serve(request, response, visits).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    endSessions: () => visits.clear(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(request: IncomingMessage, response: ServerResponse, visits: Map<string, Visit>): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://gallery');
  const [, name = '', at = ''] = pathname.split('/');
  const page = galleryPages.find((one) => one.name === name);
  if (page === undefined) {
    response.statusCode = 404;
    response.end('There is no such page.');
    return;
  }
  const visit = visitOf(request, response, page, visits);
  const first = Object.keys(page.screens)[0] ?? '';
  if (at === 'logout') {
    visit.in = false;
    visit.passed.clear();
    return redirect(response, `/${name}`);
  }
  const screenName = at === '' ? first : at;
  if (at === 'home' || (visit.in && at === ''))
    return visit.in ? send(response, home(page)) : redirect(response, `/${name}`);
  const screen = page.screens[screenName];
  if (screen === undefined) {
    response.statusCode = 404;
    response.end('There is no such screen.');
    return;
  }
  if (screen.basic === true) {
    const [user, secret] = Buffer.from((request.headers.authorization ?? '').replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':');
    if (isPerson(user) && knows(secret)) {
      visit.in = true;
      return send(response, home(page));
    }
    response.setHeader('www-authenticate', 'Basic realm="gallery"');
    return send(response, 'Unauthorized', 401);
  }
  if (request.method === 'POST') return post(request, response, { page, screen, screenName, visit });
  const { error } = visit;
  delete visit.error;
  for (const [header, value] of Object.entries(screen.headers ?? {})) response.setHeader(header, value);
  const view: View = {
    lang: page.lang,
    base: `/${name}`,
    action: `/${name}/${screenName}`,
    csrf: visit.csrf,
    ...(error === undefined ? {} : { error }),
  };
  send(response, screen.html(view), screen.status);
}

async function post(
  request: IncomingMessage,
  response: ServerResponse,
  { page, screen, screenName, visit }: { page: GalleryPage; screen: Screen; screenName: string; visit: Visit },
): Promise<void> {
  const wantsJson = (request.headers.accept ?? '').includes('application/json');
  const values = await valuesOf(request);
  const answer = judge(values, screen, visit);
  if ('refused' in answer) {
    visit.failures += 1;
  } else {
    visit.failures = 0;
    visit.passed.add(screenName);
    if ('in' in answer) visit.in = true;
  }
  if (wantsJson) {
    response.setHeader('content-type', 'application/json');
    response.statusCode = 'refused' in answer ? 401 : 200;
    response.end(JSON.stringify('in' in answer ? { location: `/${page.name}/home` } : answer));
    return;
  }
  if ('refused' in answer) visit.error = answer.refused;
  const target = 'in' in answer ? 'home' : 'to' in answer ? answer.to : screenName;
  redirect(response, `/${page.name}/${target}`);
}

function judge(values: Record<string, string>, screen: Screen, visit: Visit): Answer {
  if (values['csrf'] !== visit.csrf) return { refused: 'The form has expired. Reload the page.' };
  if (screen.after?.some((name) => !visit.passed.has(name)) === true) return { refused: 'Start again.' };
  if (visit.failures >= MOST_FAILURES) return { refused: 'Your account has been locked.' };
  return screen.submit?.(values, visit) ?? { refused: 'This form takes nothing.' };
}

function visitOf(
  request: IncomingMessage,
  response: ServerResponse,
  { name }: GalleryPage,
  visits: Map<string, Visit>,
): Visit {
  const key = `sid_${name}`;
  const sent = new RegExp(`(?:^|; )${key}=([0-9a-f]{32})`).exec(request.headers.cookie ?? '')?.[1];
  const known = sent === undefined ? undefined : visits.get(sent);
  if (known !== undefined) return known;
  const id = randomBytes(16).toString('hex');
  const visit: Visit = { csrf: randomBytes(16).toString('hex'), passed: new Set(), failures: 0, in: false };
  visits.set(id, visit);
  response.setHeader('set-cookie', `${key}=${id}; Path=/${name}; HttpOnly; SameSite=Lax`);
  return visit;
}

async function valuesOf(request: IncomingMessage): Promise<Record<string, string>> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = Buffer.concat(parts).toString();
  if ((request.headers['content-type'] ?? '').includes('json')) return JSON.parse(body) as Record<string, string>;
  return Object.fromEntries(new URLSearchParams(body));
}

function home({ name, lang }: GalleryPage): string {
  return `<!doctype html><html lang="${lang}"><title>${name}</title><h1>${name}</h1><nav><a href="/${name}/home">1</a> <a href="/${name}/home?2">2</a>
    <a href="/${name}/home?3">3</a> <a href="/${name}/logout">${wayOut[lang] ?? 'Log out'}</a></nav></html>`;
}

function send(response: ServerResponse, html: string, status = 200): void {
  response.statusCode = status;
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(html);
}

function redirect(response: ServerResponse, to: string): void {
  response.statusCode = 303;
  response.setHeader('location', to);
  response.end();
}
