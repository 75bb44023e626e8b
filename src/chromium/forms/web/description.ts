import { MOST_OPTIONS } from '../bounds.ts';
import type { SeenElement } from '../page-calls.ts';
import { flagOf, hasValue, isEditable } from './controls.ts';
import {
  attribute,
  hasAttribute,
  isAnchor,
  isButton,
  isInput,
  isSelect,
  matches,
  parentOf,
  queryAll,
  rectOf,
  tagOf,
} from './dom.ts';
import { collapsed, labelsOf, named, nameOf, nearOf, said } from './names.ts';
import { selectorsOf } from './selectors.ts';
import { closest } from './tree.ts';
import { isCovered } from './visibility.ts';

export const boxOf = (rect: DOMRect) => ({
  x: Math.round(rect.left + scrollX),
  y: Math.round(rect.top + scrollY),
  width: Math.round(rect.width),
  height: Math.round(rect.height),
});

/** Facts of the document that all descriptions of one look share. */
export interface Surroundings {
  formKeys: Map<Element, string>;
  inDialog: (element: Element) => boolean;
  active: Element | null;
}

function formOf(element: Element): Element | undefined {
  const own: unknown = 'form' in element ? element.form : undefined;
  if (own instanceof HTMLFormElement) return own;
  return closest(element, (at) => tagOf(at) === 'form' || attribute(at, 'role') === 'form');
}

/** Equal for elements of one form. */
function formKeyOf(element: Element, keys: Map<Element, string>): string | undefined {
  const form = formOf(element);
  if (!form) return undefined;
  let key = keys.get(form);
  if (key === undefined) keys.set(form, (key = `f${keys.size}`));
  return key;
}

function numberOf(element: Element, name: string): number | undefined {
  const value = Number.parseInt(attribute(element, name) ?? '', 10);
  return Number.isInteger(value) && value >= 0 && value < 1e6 ? value : undefined;
}

/** Its own classes, and the classes and file names of pictures in it. */
function classesOf(element: Element): string {
  let text = attribute(element, 'class') ?? '';
  for (const picture of [...queryAll(element, 'i,svg,img,span[class*=icon],use')].slice(0, 4)) {
    text += ` ${attribute(picture, 'class') ?? ''}`;
    const source = attribute(picture, 'src') || attribute(picture, 'href') || attribute(picture, 'xlink:href');
    if (source && source.length < 300 && !source.startsWith('data:'))
      text += ` ${source.split('/').pop()!.split('?')[0]!}`;
  }
  return collapsed(text, 200);
}

const optionsOf = (element: HTMLSelectElement) =>
  [...element.options].slice(0, MOST_OPTIONS).map((option) => ({
    label: collapsed(option.label, 100),
    value: option.value.slice(0, 200),
    selected: option.selected,
  }));

const addressOf = ({ href }: HTMLAnchorElement | SVGAElement) => (typeof href === 'string' ? href : href.baseVal);

const isBox = (element: Element): element is HTMLInputElement =>
  isInput(element) && /^(checkbox|radio)$/.test(element.type);
/** Undefined for an element that cannot be checked. */
export const isChecked = (element: Element): boolean | undefined =>
  isBox(element) ? element.checked : flagOf(element, 'aria-checked');

function isExpanded(element: Element): boolean | undefined {
  const parent = tagOf(element) === 'summary' ? parentOf(element) : null;
  return parent instanceof HTMLDetailsElement ? parent.open : flagOf(element, 'aria-expanded');
}

function isSelected(element: Element): boolean | undefined {
  const current = attribute(element, 'aria-current');
  return flagOf(element, 'aria-selected') ?? (current === null ? undefined : current !== 'false');
}

export function describe(
  element: Element,
  visible: boolean,
  { formKeys, inDialog, active }: Surroundings,
): SeenElement {
  const tag = tagOf(element);
  const labels = labelsOf(element);
  const name = nameOf(element, labels);
  const rect = rectOf(element);
  const inViewport = rect.bottom > 0 && rect.right > 0 && rect.top < innerHeight && rect.left < innerWidth;
  const takesText = tag === 'input' || tag === 'select' || tag === 'textarea' || isEditable(element);
  return {
    tag: tag.slice(0, 40),
    type: isInput(element) || isButton(element) ? element.type : undefined,
    name: said(element, 'name'),
    id: said(element, 'id'),
    autocomplete: said(element, 'autocomplete'),
    role: said(element, 'role'),
    accessibleName: name || undefined,
    labels,
    placeholder: said(element, 'placeholder') || said(element, 'aria-placeholder'),
    title: said(element, 'title'),
    description: named(element, 'aria-describedby') || undefined,
    filled: hasValue(element),
    options: isSelect(element) ? optionsOf(element) : undefined,
    checked: isChecked(element),
    inputmode: said(element, 'inputmode'),
    maxlength: numberOf(element, 'maxlength'),
    pattern: said(element, 'pattern'),
    required: hasAttribute(element, 'required') || attribute(element, 'aria-required') === 'true',
    disabled: matches(element, ':disabled') || attribute(element, 'aria-disabled') === 'true',
    readonly: hasAttribute(element, 'readonly') || attribute(element, 'aria-readonly') === 'true',
    visible,
    inViewport,
    covered: visible && inViewport ? isCovered(element) : undefined,
    box: boxOf(rect),
    formKey: formKeyOf(element, formKeys),
    href: isAnchor(element) ? collapsed(addressOf(element), 500) : undefined,
    near: visible && takesText ? nearOf(element) : '',
    inDialog: inDialog(element),
    classes: classesOf(element),
    expanded: isExpanded(element),
    selected: isSelected(element),
    pressed: flagOf(element, 'aria-pressed'),
    invalid: flagOf(element, 'aria-invalid'),
    focused: element === active || undefined,
    selectors: visible ? selectorsOf(element, labels, name) : [],
  };
}
