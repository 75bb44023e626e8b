import { attribute, hasAttribute, isInput, isTextArea, tagOf, textOf } from './dom.ts';

const clickRoles = new Set([
  'button',
  'link',
  'tab',
  'menuitem',
  'menuitemradio',
  'option',
  'checkbox',
  'radio',
  'switch',
  'textbox',
  'combobox',
  'searchbox',
  'treeitem',
]);
export const buttonTypes: ReadonlySet<string> = new Set(['submit', 'button', 'reset', 'image']);

/** Elements with text that is not part of the page's text. */
export const silentTags: ReadonlySet<string> = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'head',
  'svg',
  'canvas',
  'iframe',
  'object',
  'video',
  'audio',
  'textarea',
  'select',
  'datalist',
  'math',
]);

export function isEditable(element: Element): boolean {
  const editable = attribute(element, 'contenteditable');
  return editable !== null && editable !== 'false';
}

/** A form control, a button, a link, an element with a click role, or editable text. */
export function isControl(element: Element): boolean {
  const tag = tagOf(element);
  const role = attribute(element, 'role') ?? '';
  if (tag === 'input') return (attribute(element, 'type') ?? '').toLowerCase() !== 'hidden';
  if (tag === 'a') return hasAttribute(element, 'href') || clickRoles.has(role) || hasAttribute(element, 'onclick');
  if (tag === 'button' || tag === 'select' || tag === 'textarea' || tag === 'summary') return true;
  if (clickRoles.has(role.toLowerCase().trim())) return true;
  if (hasAttribute(element, 'onclick')) return tag !== 'body' && tag !== 'html' && tag !== 'label' && tag !== 'form';
  return isEditable(element);
}

/** A control that takes a value: not a button and not a link. */
export function isField(element: Element): boolean {
  const tag = tagOf(element);
  return tag === 'select' || tag === 'textarea' || (isInput(element) && !buttonTypes.has(element.type));
}

export function hasValue(element: Element): boolean {
  if (isInput(element))
    return !/^(checkbox|radio|submit|button|reset|image|file|color|range)$/.test(element.type) && element.value !== '';
  if (isTextArea(element)) return element.value !== '';
  return isEditable(element) && textOf(element).trim() !== '';
}

/** An attribute that is true or false in words. */
export function flagOf(element: Element, name: string): boolean | undefined {
  const value = attribute(element, name);
  return value === 'true' || value === 'mixed' ? true : value === 'false' ? false : undefined;
}
