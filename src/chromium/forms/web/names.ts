import { MOST_NEAR } from '../bounds.ts';
import { MOST_DEPTH } from './bounds.ts';
import { buttonTypes, isControl, isEditable, silentTags } from './controls.ts';
import {
  attribute,
  byId,
  isElement,
  isInput,
  isLabel,
  isRoot,
  isText,
  previousOf,
  queryAll,
  rootOf,
  tagOf,
} from './dom.ts';
import { above, below } from './tree.ts';

export const collapsed = (text: string, most: number) => text.replace(/\s+/g, ' ').trim().slice(0, most);

/** The attribute of an element, if it has it. */
export function said(element: Element, name: string, most = 200): string | undefined {
  const value = attribute(element, name);
  return value === null ? undefined : collapsed(value, most);
}

interface TextOptions {
  most: number;
  /** Elements that are left out of names. */
  skip?: ((element: Element) => boolean) | undefined;
  /** With the alternative texts of pictures. */
  names?: boolean;
}

const inlineTags = /^(a|b|i|em|strong|span|small|u|code|abbr|mark|sub|sup|font|slot)$/;
export const firstOf = (text: string) => (text.length > 2000 ? text.slice(0, 2000) : text);

/** The text in an element, in the order of the page. */
export function textIn(element: Element, { most, skip, names = false }: TextOptions): string {
  let text = '';
  let seen = 0;
  const walk = (at: Node, depth: number): void => {
    if (text.length > most || ++seen > 2000 || depth > MOST_DEPTH) return;
    if (isText(at)) {
      text += firstOf(at.data);
      return;
    }
    if (!isElement(at) || (at !== element && skip?.(at))) return;
    const tag = tagOf(at);
    const alternative = names ? alternativeOf(at, at === element) : undefined;
    if (alternative !== undefined) text += ` ${alternative} `;
    else if (silentTags.has(tag)) return;
    else if (tag === 'br') text += ' ';
    else {
      const space = inlineTags.test(tag) ? '' : ' ';
      text += space;
      for (const child of below(at)) walk(child, depth + 1);
      text += space;
    }
  };
  walk(element, 0);
  return collapsed(text, most);
}

/** The alternative text of a picture, or the label of an element that has one. */
function alternativeOf(element: Element, isTop: boolean): string | undefined {
  const tag = tagOf(element);
  if (tag === 'img') return attribute(element, 'alt') || attribute(element, 'title') || '';
  const label = attribute(element, 'aria-label');
  if (tag === 'svg') {
    const titles = [...queryAll(element, 'title')].map(({ textContent }) => (textContent ?? '').slice(0, 100));
    return label || titles.join(' ');
  }
  return isTop ? undefined : (label ?? undefined);
}

const labelText = (label: Element) =>
  textIn(label, { most: 200, skip: (at) => !isLabel(at) && isControl(at) && tagOf(at) !== 'a', names: true });

/** The text of the elements that an attribute names by their ids. */
export function named(element: Element, name: 'aria-labelledby' | 'aria-describedby'): string {
  const root = rootOf(element);
  if (!isRoot(root)) return '';
  const ids = (attribute(element, name) ?? '').split(/\s+/).filter(Boolean).slice(0, 5);
  const texts = ids.map((id) => byId(root, id)).map((other) => other && textIn(other, { most: 200, names: true }));
  return collapsed(texts.filter(Boolean).join(' '), 200);
}

export function labelElements(element: Element): HTMLLabelElement[] {
  const labels: unknown = 'labels' in element ? element.labels : undefined;
  return labels instanceof NodeList ? ([...labels] as HTMLLabelElement[]) : [];
}

export function labelsOf(element: Element): string[] {
  const labels = [...labelElements(element).slice(0, 5).map(labelText), named(element, 'aria-labelledby')];
  return [...new Set(labels.filter(Boolean))].slice(0, 5);
}

/** As assistive technology would name it. */
export function nameOf(element: Element, labels: readonly string[]): string {
  const given = named(element, 'aria-labelledby') || said(element, 'aria-label');
  if (given) return given;
  if (isInput(element) && buttonTypes.has(element.type))
    return said(element, 'value') || said(element, 'alt') || said(element, 'title') || '';
  if (labels.length > 0) return labels.join(' ').slice(0, 200);
  if (!/^(input|select|textarea)$/.test(tagOf(element)) && !isEditable(element)) {
    const text = textIn(element, { most: 200, skip: isInput, names: true });
    if (text) return text;
  }
  return said(element, 'title') || said(element, 'placeholder') || '';
}

const fields = 'input:not([type=hidden]),select,textarea';

/** The text beside or above a field that belongs to no other control. */
export function nearOf(element: Element): string {
  const isForeign = (at: Element) =>
    at === element || isControl(at) || (isLabel(at) && at.control !== null && at.control !== element);
  const nearText = (at: Element) => textIn(at, { most: MOST_NEAR, skip: isForeign });

  /** The text of the nearest siblings before it that have no field in them. */
  function before(at: Element): string {
    let text = '';
    let sibling = previousOf(at);
    for (let steps = 0; sibling && steps < 3 && text === ''; sibling = previousOf(sibling), steps++) {
      if (isText(sibling)) text = collapsed(firstOf(sibling.data), MOST_NEAR);
      else if (isElement(sibling) && queryAll(sibling, fields).length === 0 && !isControl(sibling))
        text = nearText(sibling);
      else break;
    }
    return text;
  }

  let at = element;
  for (let level = 0; level < 4; level++) {
    const parent = above(at);
    if (!parent || tagOf(parent) === 'body') return '';
    const text = queryAll(parent, fields).length <= 1 ? nearText(parent) : before(at);
    if (text !== '') return text;
    at = parent;
  }
  return '';
}
