import type { ReadChoice, ReadField, Reading, Step } from '../../../src/logins/reading/types.ts';
import type { Snapshot } from '../../../src/logins/reading/snapshot.ts';
import { FormsError, type FlowBrowser, type Passkey } from '../../../src/logins/flow/browser.ts';
import type { Reader } from '../../../src/logins/flow/types.ts';

/** A page of a scripted site: what the reading says about it, and what a click on each of its elements does. */
export interface ScriptedPage {
  url: string;
  status?: number;
  basic?: boolean;
  reading: Partial<Reading> & Pick<Reading, 'kind'>;
  /** By the element's reference: the next page's name. Enter counts as a click on `submit`. */
  click?: Record<string, (site: SiteState) => string | void>;
  /** The address of the frame that everything is in, if it is in one. */
  frame?: string;
  /** Controls that the page shows besides those of its reading, by their names. */
  shows?: string[];
  /** Texts that the page shows: they reach the records. */
  texts?: string[];
  /** By the element's reference: what the page does when something is typed there, before it holds the text. */
  type?: Record<string, (site: SiteState) => string | void>;
  requesting?: boolean;
  /** What it is at the next look, after so many. */
  becomes?: { name: string; after: number };
}

export interface SiteState {
  /** The values typed on the page, by reference. A new page clears them. */
  values: Map<string, string>;
  cookies: Map<string, string>;
  /** Every submit, for the test to count. */
  submits: Record<string, string>[];
  loggedIn: boolean;
  log: string[];
  /** A visitor that the site does not know. */
  stranger?: true;
}

export interface Script {
  pages: Record<string, ScriptedPage>;
  /** The page of an address; undefined when the address does not answer. */
  route(url: string, site: SiteState): string | undefined;
  basic?(site: SiteState, answer: { username: string; password: string }): string;
  /** The browser has removed what it remembered of the site. */
  forgotten?(site: SiteState): void;
}

/** A browser whose pages are a table. `read` gives the table's reading back, with the fields that are filled. */
export function scriptedSite(script: Script) {
  const site: SiteState = { values: new Map(), cookies: new Map(), submits: [], loggedIn: false, log: [] };
  const open = new Map<string, string>();
  const looks = new Map<string, number>();
  let opened = 0;

  const pageOf = (pageId: string) => {
    const name = open.get(pageId);
    if (name === undefined) throw new FormsError('page_gone', 'The page is closed.');
    const page = script.pages[name];
    if (!page) throw new Error(`The script has no page ${name}.`);
    return { name, page };
  };
  const goTo = (pageId: string, name: string | void) => {
    if (name === undefined) return;
    open.set(pageId, name);
    looks.delete(pageId);
    site.values.clear();
  };
  const arrive = (pageId: string, url: string, visitor = site) => {
    const name = url === 'about:blank' ? 'blank' : script.route(url, visitor);
    if (name === undefined) return { error: 'net::ERR_NAME_NOT_RESOLVED' };
    goTo(pageId, name);
    return { status: script.pages[name]?.status ?? 200 };
  };
  script.pages['blank'] ??= { url: 'about:blank', reading: { kind: 'blank' } };
  const first = 'page-1';
  open.set(first, 'blank');

  const browser: FlowBrowser = {
    pages: async () => [...open].map(([pageId]) => ({ pageId, url: pageOf(pageId).page.url, title: '' })),
    async open(url) {
      const pageId = `second-${++opened}`;
      const values = new Map(site.values);
      open.set(pageId, 'blank');
      arrive(pageId, url);
      for (const [ref, value] of values) site.values.set(ref, value);
      return pageId;
    },
    async openStranger(url) {
      const pageId = `stranger-${++opened}`;
      open.set(pageId, 'blank');
      arrive(pageId, url, {
        values: new Map(),
        cookies: new Map(),
        submits: [],
        loggedIn: false,
        log: [],
        stranger: true,
      });
      return pageId;
    },
    async forget() {
      site.log.push('forget');
      site.cookies.clear();
      script.forgotten?.(site);
    },
    async close(pageId) {
      open.delete(pageId);
    },
    navigate: async (pageId, url) => {
      site.log.push(`navigate ${url}`);
      return arrive(pageId, url);
    },
    reload: async (pageId) => arrive(pageId, pageOf(pageId).page.url),
    async snapshot(pageId) {
      const { page } = pageOf(pageId);
      const seen = (looks.get(pageId) ?? 0) + 1;
      looks.set(pageId, seen);
      if (page.becomes && seen > page.becomes.after) goTo(pageId, page.becomes.name);
      return snapshotOf(pageOf(pageId), site);
    },
    async act(pageId, action) {
      const { name, page } = pageOf(pageId);
      const { origin } = new URL(page.frame ?? page.url);
      const around = new URL(page.url).origin;
      if ('allow' in action && !(action.allow(origin) && (page.frame === undefined || action.allow(around, true))))
        throw new FormsError('foreign', 'It is not for this.', origin);
      if (action.kind === 'type') {
        const held = site.values.get(action.ref)?.length ?? -1;
        if (action.unlessHeld && held >= action.text.length) return;
        const next = page.type?.[action.ref]?.(site);
        if (next !== undefined) open.set(pageId, next);
        site.values.set(action.ref, action.text);
      } else if (action.kind === 'choose') site.values.set(action.ref, action.value);
      else if (action.kind === 'check') site.values.set(action.ref, String(action.on));
      else {
        const ref = action.kind === 'press' ? 'submit' : action.ref;
        site.log.push(`click ${name}/${ref}`);
        const handler = page.click?.[ref];
        if (!handler) throw new FormsError('unreachable', 'Nothing is there.');
        if (ref === 'submit') site.submits.push(Object.fromEntries(site.values));
        goTo(pageId, handler(site));
      }
    },
    settled: async () => undefined,
    state: async () => ({
      cookies: [...site.cookies].map(([cookie, hash]) => ({
        name: cookie,
        domain: 'shop.example',
        path: '/',
        hash,
        httpOnly: true,
        session: true,
      })),
      storage: [],
    }),
    async basicAuth(pageId, answer) {
      goTo(pageId, script.basic?.(site, answer));
      return {};
    },
    passkeys: {
      enable: async () => undefined,
      exported: async (): Promise<Passkey[]> => [],
      add: async () => undefined,
    },
    find: async (pageId, selectors) => {
      const { page } = pageOf(pageId);
      const all = elementsOf(page.reading);
      return all.find((one) => one.selectors.some((selector) => selectors.includes(selector)))?.ref;
    },
  };

  const read: Reader = (snapshot, context) => {
    const page = script.pages[snapshot.title]!;
    const filled = new Set(snapshot.frames[0]!.elements.filter((element) => element.filled).map(({ ref }) => ref));
    const before = context.before?.title;
    return {
      fields: [],
      choices: [],
      next: [],
      evidence: [],
      ...page.reading,
      ...(page.reading.fields && {
        fields: page.reading.fields.map((one) => ({ ...one, filled: filled.has(one.ref) })),
      }),
      ...(page.reading.error && {
        error: { ...page.reading.error, fresh: before !== undefined && before !== snapshot.title },
      }),
    };
  };
  return { site, browser, read };
}

function snapshotOf({ name, page }: { name: string; page: ScriptedPage }, { values }: SiteState): Snapshot {
  const box = { x: 0, y: 0, width: 10, height: 10 };
  return {
    url: page.url,
    title: name,
    httpStatus: page.status ?? 200,
    loading: false,
    ...(page.requesting && { requesting: true }),
    ...(page.basic && { basicAuth: { origin: new URL(page.url).origin, refused: false } }),
    frames: [
      {
        frameId: 'main',
        url: page.frame ?? page.url,
        origin: new URL(page.frame ?? page.url).origin,
        main: page.frame === undefined,
        visible: true,
        truncated: false,
        elements: [...elementsOf(page.reading), ...(page.shows ?? []).map(shown)].map(({ ref, selectors, label }) => ({
          ref,
          selectors,
          accessibleName: label,
          tag: 'input',
          labels: [],
          filled: values.has(ref),
          required: false,
          disabled: false,
          readonly: false,
          visible: true,
          inViewport: true,
          box,
          near: '',
          inDialog: false,
          classes: '',
        })),
        texts: (page.texts ?? []).map((text) => ({
          text,
          box,
          classes: '',
          inDialog: false,
          live: false,
          visible: true,
        })),
      },
    ],
  };
}

const shown = (label: string) => ({ ref: label, label, selectors: [] as string[] });

const elementsOf = ({ fields = [], choices = [], next = [], submit }: Partial<Reading>) => [
  ...fields,
  ...choices,
  ...next,
  ...(submit ? [submit] : []),
];

export function field(type: ReadField['type'], key: ReadField['key'], more: Partial<ReadField> = {}): ReadField {
  return {
    id: key,
    ref: key,
    type,
    key,
    label: key,
    required: true,
    filled: false,
    selectors: [`#${key}`],
    legacyType: type === 'password' ? 'password' : 'text',
    ...more,
  };
}

export function choice(type: ReadChoice['type'], id: string, more: Partial<ReadChoice> = {}): ReadChoice {
  return { id, ref: id, type, label: id, selectors: [`#${id}`], ...more };
}

export function step(why: Step['why'], label: string): Step {
  return { ref: label, why, label, selectors: [`text=${label}`], act: 'click' };
}

export const submit = { ref: 'submit', label: 'Go', selectors: ['#submit'] };
