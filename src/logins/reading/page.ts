import { withoutEnd } from '../../lib/text.ts';
import { urlOf } from '../../lib/urls.ts';
import type { Box, El, FrameSnapshot, Snapshot, TextBlock } from './snapshot.ts';
import { attributeWords } from './words/match.ts';

type ControlKind = 'text' | 'password' | 'select' | 'radio' | 'checkbox' | 'button' | 'link' | 'tab' | 'other';

/** An element with what the rules ask of it, worked out once. */
export interface Item {
  el: El;
  frame: FrameSnapshot;
  /** Place in the page, over all frames. */
  order: number;
  control: ControlKind;
  /** The name that a person would give it. */
  label: string;
  /** Everything that the page says about it to people. */
  says: string;
  /** Its name, id and autocomplete hint as words. */
  attributes: string;
}

/** A snapshot, prepared for the rules. */
export interface Page {
  snapshot: Snapshot;
  path: string;
  /** What a person can see and use. */
  items: Item[];
  /** Links, buttons and radio buttons that are in the document and not on view: closed menus, drawn-over radio buttons. */
  hidden: Item[];
  texts: TextBlock[];
  headings: string[];
  /** The items of each frame: those of others are looked at only where the whole page is asked. */
  inFrame: Map<FrameSnapshot, Item[]>;
}

const dateTypes = ['date', 'time', 'month', 'week', 'datetime-local'];
const textTypes = new Set(['', 'text', 'email', 'tel', 'number', 'url', 'search', ...dateTypes]);
const buttonTypes = new Set(['submit', 'button', 'image', 'reset']);
const buttonRoles = new Set(['button', 'menuitem', 'option', 'menuitemradio', 'treeitem', 'listitem']);

export function page(snapshot: Snapshot): Page {
  const all = snapshot.frames
    .flatMap((frame) => frame.elements.map((el) => ({ el, frame })))
    .map(({ el, frame }, order) => item(el, frame, order));
  const texts = snapshot.frames.flatMap((frame) => frame.texts.filter((text) => text.visible && text.text !== ''));
  const items = all.filter(({ el }) => onView(el));
  return {
    snapshot,
    path: pathOf(snapshot.url),
    items,
    inFrame: grouped(items, ({ frame }) => frame),
    hidden: all.filter(
      (one) =>
        !onView(one.el) && ['link', 'button', 'radio', 'tab', 'checkbox'].includes(one.control) && !one.el.disabled,
    ),
    texts,
    headings: texts.filter((text) => text.heading || /^h[1-3]$|^legend$/.test(text.tag ?? '')).map(({ text }) => text),
  };
}

export function grouped<T, Key>(those: readonly T[], keyOf: (one: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>();
  for (const one of those) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

function item(el: El, frame: FrameSnapshot, order: number): Item {
  const names = [...el.labels, el.accessibleName, el.placeholder, el.title].filter(
    (name) => name !== undefined && name !== '',
  );
  const control = controlOf(el);
  const says =
    names.length > 0 ? [...new Set(names)].join(' · ') : control === 'button' || control === 'link' ? '' : el.near;
  return {
    el,
    frame,
    order,
    control,
    label: labelOf(el, control),
    says,
    attributes: attributeWords(el.name, el.id, el.autocomplete),
  };
}

function controlOf(el: El): ControlKind {
  const type = el.type ?? '';
  if (el.tag === 'input') {
    if (type === 'password') return 'password';
    if (type === 'checkbox') return 'checkbox';
    if (type === 'radio') return 'radio';
    if (buttonTypes.has(type)) return 'button';
    return textTypes.has(type) ? 'text' : 'other';
  }
  if (el.tag === 'select') return 'select';
  if (el.tag === 'textarea') return 'text';
  if (el.role === 'tab') return 'tab';
  if (el.role === 'checkbox' || el.role === 'switch' || el.role === 'menuitemcheckbox') return 'checkbox';
  if (el.role === 'radio') return 'radio';
  if (el.role === 'textbox' || el.role === 'searchbox') return 'text';
  if (el.role === 'combobox' || el.role === 'listbox' || el.role === 'slider') return 'other';
  if (el.role !== undefined && buttonRoles.has(el.role)) return 'button';
  if (el.tag === 'a' || el.role === 'link') return 'link';
  return 'button';
}

/** Characters of a text beside a field that names it. A longer one is a sentence about it. */
const mostBeside = 40;

function labelOf(el: El, control: ControlKind): string {
  const named = control === 'button' || control === 'link' || control === 'tab' ? [] : el.labels;
  // A tooltip says how to write the value. The text beside the field says what it is, such as in the first cell of its row.
  const hasTooltip = named.length === 0 && el.title !== undefined && el.accessibleName === el.title;
  const beside = hasTooltip && el.near.length <= mostBeside ? el.near : undefined;
  const candidates = [...named, beside, el.accessibleName, el.placeholder, el.title, el.near, el.name, el.id];
  const found = candidates.find((name) => name !== undefined && name.trim() !== '') ?? '';
  return withoutEnd(found, /[\s:*：＊]/u)
    .trim()
    .slice(0, 120);
}

/** Fields that only programs should find are out of sight, or a pixel wide. */
function onView(el: El): boolean {
  return (
    el.visible && el.box.width > 2 && el.box.height > 2 && el.box.x + el.box.width > 0 && el.box.y + el.box.height > 0
  );
}

export function pathOf(url: string): string {
  const address = urlOf(url);
  if (!address) return '';
  const { pathname, hash, search } = address;
  // Single-page applications have their paths behind the #. The query may name the page to return to: it is left out.
  return `${pathname}${hash.startsWith('#/') || hash.startsWith('#!') ? hash : ''}${/[?&](?:action|mode|view|page|do)=(\w+)/.exec(search)?.[1] ?? ''}`.toLowerCase();
}

/** Login addresses, in the words that developers give paths. */
const loginPath =
  /(?:^|[/_.#!?=-])(?:log-?_?in|sign-?_?in|log-?_?on|sign-?_?on|auth|authenticate|authentication|authorize|sso|session|sessions|cas|saml\d?|oidc|oauth2?|wp-login|account-?login|users?-?login|anmelden|anmeldung|einloggen|connexion|identification|iniciar-?sesion|acceso|acceder|ingresar|accedi|accesso|entrar|acessar|inloggen|aanmelden|logowanie|zaloguj|giris|uye-?girisi|vhod|voiti|prihlaseni|prihlasit|logga-?in|logg-?inn|log-?ind|kirjaudu|bejelentkezes|belepes|autentificare|conectare)(?:$|[/_.?#-])/;

/** A path that names the login itself, and not one of its parts, which applications have pages about too. */
export function isSureLoginPath(path: string): boolean {
  return isLoginPath(path.replace(/auth(?:entication|enticate|orize)?|sessions?|sso|cas|saml\d?|oidc|oauth2?/g, ''));
}

export function isLoginPath(path: string): boolean {
  return loginPath.test(path) && !isLogoutPath(path);
}

const logoutPath =
  /(?:log-?_?out|sign-?_?out|log-?_?off|sign-?_?off|abmelden|ausloggen|deconnexion|cerrar-?sesion|logout|uitloggen|wyloguj|cikis|odhlasit|logga-?ut|logg-?ut|log-?ud|kirjaudu-?ulos|kijelentkezes|deconectare|disconnect|end-?_?session)/;

export function isLogoutPath(path: string): boolean {
  return logoutPath.test(path);
}

export function isClickable({ control }: Item): boolean {
  return control === 'button' || control === 'link' || control === 'tab';
}

/** Text that describes the whole page: its title and headings. */
export function titles(of: Page): string[] {
  return [of.snapshot.title, ...of.headings];
}

export function gap(a: Box, b: Box): { across: number; down: number } {
  return {
    across: Math.max(0, Math.max(a.x, b.x) - Math.min(a.x + a.width, b.x + b.width)),
    down: Math.max(0, Math.max(a.y, b.y) - Math.min(a.y + a.height, b.y + b.height)),
  };
}
