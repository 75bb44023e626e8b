import { finder } from '../../../lib/web/elements.ts';

/** Elements of page.html that are not plain HTMLElements. */
const classes = {
  'browser-link': HTMLAnchorElement,
  'end-bad': SVGElement,
  'end-good': SVGElement,
  'end-link': HTMLAnchorElement,
};

/** The other elements of page.html. */
type Plain =
  | 'about'
  | 'browser'
  | 'browser-frame'
  | 'browser-leave'
  | 'browser-toggle'
  | 'cancel'
  | 'choices'
  | 'elsewhere'
  | 'elsewhere-text'
  | 'end'
  | 'end-next'
  | 'end-quote'
  | 'end-text'
  | 'end-title'
  | 'fields'
  | 'footer'
  | 'form'
  | 'form-note'
  | 'form-title'
  | 'monogram'
  | 'note'
  | 'or'
  | 'problem'
  | 'status-text'
  | 'submit'
  | 'time'
  | 'title'
  | 'who';

export const $ = finder<typeof classes, Plain>(classes);

/** A new element, with these properties and children. */
export function make<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  properties: Partial<HTMLElementTagNameMap[T]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[T] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
