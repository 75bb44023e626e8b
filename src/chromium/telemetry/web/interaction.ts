/**
 * Runs in an isolated world of every document, so pages see neither it nor its binding. It must not throw: clients with Runtime enabled
 * would receive the exception. Text that is typed into password fields, fields for one-time codes and fields with hidden text is not
 * captured, nor are keys for fields that are hidden in a closed shadow tree.
 */
import type { InteractionReport } from '../interaction-report.ts';

const SETTLED_MS = 200;
const MOST_TEXT = 200;
const secretHints = /\b(one-time-code|current-password|new-password|cc-csc)\b/;
const secrets = new WeakSet<Element>();

function isSecret(element: Element): boolean {
  if (secrets.has(element)) return true;
  const style = getComputedStyle(element) as CSSStyleDeclaration & { webkitTextSecurity?: string };
  const found =
    (element instanceof HTMLInputElement && element.type === 'password') ||
    secretHints.test((element.getAttribute('autocomplete') ?? '').toLowerCase()) ||
    style.webkitTextSecurity !== 'none';
  if (found) secrets.add(element); // it stays secret when the page shows its text
  return found;
}

/** A field that is in the document as a password field may be shown as text when it gets the focus. */
function noteSecrets(): void {
  for (const field of document.querySelectorAll('input[type="password"]')) secrets.add(field);
}

const isEditable = (element: Element) =>
  element instanceof HTMLInputElement ||
  element instanceof HTMLTextAreaElement ||
  element instanceof HTMLSelectElement ||
  (element instanceof HTMLElement && element.isContentEditable);

/** Whether a closed shadow tree may hold the field that has the focus. */
const mayHideField = (element: Element) =>
  !isEditable(element) &&
  element !== document.body &&
  element !== document.documentElement &&
  !(element instanceof HTMLAnchorElement || element instanceof HTMLButtonElement || element instanceof SVGElement);

/** A path of at most eight steps, from the nearest element with an id. */
function selectorOf(element: Element): string {
  const steps: string[] = [];
  for (let at: Element | null = element; at instanceof Element && steps.length < 8;) {
    const tag = at.localName;
    if (at.id && at.id.length <= 100) {
      steps.unshift(`${tag}#${CSS.escape(at.id)}`);
      break;
    }
    const parent: Element | null = at.parentElement;
    if (parent) steps.unshift(tag + placeIn(parent, at));
    else steps.unshift(tag);
    const root: Node | null = parent ? null : at.getRootNode();
    at = root instanceof ShadowRoot ? root.host : parent;
  }
  return steps.join(' > ').slice(0, 1000);
}

function placeIn(parent: Element, element: Element): string {
  let place = 1;
  let alike = 0;
  for (let other = parent.firstElementChild; other && alike <= 1000; other = other.nextElementSibling) {
    if (other.localName !== element.localName) continue;
    alike += 1;
    if (other === element) place = alike;
  }
  return alike > 1 ? `:nth-of-type(${place})` : '';
}

function textOf(element: Element): string {
  if (isSecret(element)) return '';
  if (element instanceof HTMLInputElement)
    return /^(button|submit|reset)$/.test(element.type) ? element.value.trim().slice(0, MOST_TEXT) : '';
  if (isEditable(element)) return '';
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = '';
  for (let seen = 0; text.length < MOST_TEXT && seen < 500 && walker.nextNode(); seen++) {
    const holder = walker.currentNode.parentElement;
    if (!holder || /^(SCRIPT|STYLE|NOSCRIPT|TEXTAREA|OPTION)$/.test(holder.tagName)) continue;
    if (holder.isContentEditable || !holder.checkVisibility()) continue;
    text += ` ${(walker.currentNode as Text).data}`;
  }
  return text.replace(/\s+/g, ' ').trim().slice(0, MOST_TEXT);
}

function targetOf(event: Event): Element {
  const [first] = event.composedPath();
  return first instanceof Element ? first : document.documentElement;
}

type Report = (report: InteractionReport) => void;

function onClick(event: MouseEvent, report: Report): void {
  noteSecrets();
  const element = targetOf(event);
  report({
    type: 'click',
    x: Math.round(event.clientX),
    y: Math.round(event.clientY),
    selector: selectorOf(element),
    tag: element.tagName.toUpperCase(),
    text: textOf(element),
  });
}

function onFocus(event: FocusEvent): void {
  noteSecrets();
  isSecret(targetOf(event));
}

function onKey(event: KeyboardEvent, report: Report): void {
  const element = targetOf(event);
  if (event.repeat || isSecret(element) || mayHideField(element)) return;
  report({ type: 'key', key: event.key, selector: selectorOf(element), tag: element.tagName.toUpperCase() });
}

interface Position {
  x: number;
  y: number;
}
const scrolls = new Map<Element, { from: Position; timer: number | undefined }>();
const restedAt = new WeakMap<Element, Position>();

function onScroll({ target }: Event, report: Report): void {
  const element = target instanceof Document ? (document.scrollingElement ?? document.documentElement) : target;
  if (!(element instanceof Element)) return;
  const scroll = scrolls.get(element) ?? { from: restedAt.get(element) ?? { x: 0, y: 0 }, timer: undefined };
  scrolls.set(element, scroll);
  clearTimeout(scroll.timer);
  const settled = () => {
    scrolls.delete(element);
    const { from } = scroll;
    const to = { x: Math.round(element.scrollLeft), y: Math.round(element.scrollTop) };
    restedAt.set(element, to);
    if (to.x === from.x && to.y === from.y) return;
    report({ type: 'scroll', from_x: from.x, from_y: from.y, to_x: to.x, to_y: to.y, selector: selectorOf(element) });
  };
  scroll.timer = setTimeout(() => silently(settled), SETTLED_MS);
}

function silently(work: () => void): void {
  try {
    work();
  } catch {
    // What cannot be read is not reported.
  }
}

/** Reports clicks, keys and scrolls by the binding of this name. Called again in the same document it does nothing. */
export function listen(binding: string): void {
  const world = globalThis as { corralListens?: boolean } & Record<string, unknown>;
  const send = world[binding] as ((message: string) => void) | undefined;
  if (typeof send !== 'function' || world.corralListens) return;
  world.corralListens = true;
  const report: Report = (message) => send(JSON.stringify(message));
  const on = <Name extends 'click' | 'focusin' | 'keydown' | 'scroll'>(
    name: Name,
    listener: (event: WindowEventMap[Name], report: Report) => void,
  ) =>
    addEventListener(
      name,
      (event) => {
        if (event.isTrusted) silently(() => listener(event, report));
      },
      { capture: true, passive: true },
    );
  on('click', onClick);
  on('focusin', onFocus);
  on('keydown', onKey);
  on('scroll', onScroll);
}
