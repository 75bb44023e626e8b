import type { FormsCalls } from '../page-calls.ts';
import { hasValue } from './controls.ts';
import { isChecked } from './description.ts';
import {
  editDocument,
  focusElement,
  hasAttribute,
  isInput,
  isTextArea,
  matches,
  rectOf,
  scrollIntoView,
  setInputValue,
  textOf,
} from './dom.ts';
import { keptElement } from './kept.ts';
import { labelElements } from './names.ts';
import { deepActive } from './tree.ts';
import { isCovered, isShown, isSized, isVisible, middleOf } from './visibility.ts';

const isDisabled = (element: Element) => matches(element, ':disabled');
/** Whether a click at its middle reaches something else, or nothing. */
const isOutOfReach = (element: Element) => isCovered(element) !== false;

/** The label of an input that is not drawn itself, such as a checkbox with a picture. */
const shownLabel = (element: Element) =>
  labelElements(element).find((label) => isShown(label) && isSized(rectOf(label)));

export const aim: FormsCalls['aim'] = (look, index) => {
  const element = keptElement(look, index);
  if (!element) return { why: 'stale' };
  if (isDisabled(element)) return { why: 'disabled' };
  const target = isVisible(element) ? element : shownLabel(element);
  if (!target) return { why: 'hidden' };
  const rect = rectOf(target);
  const inView = rect.top >= 0 && rect.left >= 0 && rect.bottom <= innerHeight && rect.right <= innerWidth;
  if (!inView || isOutOfReach(target))
    scrollIntoView(target, { block: 'center', inline: 'center', behavior: 'instant' });
  const at = middleOf(target);
  if (!at) return { why: 'hidden' };
  if (!isOutOfReach(target)) return at;
  const label = target === element ? shownLabel(element) : undefined;
  if (!label || isOutOfReach(label)) return { why: 'covered' };
  return middleOf(label) ?? { why: 'hidden' };
};

export const focused: FormsCalls['focused'] = (look, index) => {
  const element = keptElement(look, index);
  return element !== undefined && deepActive() === element && document.hasFocus();
};

const giveFocus = (element: Element) => focusElement(element as HTMLElement); // a method of SVG elements too

export const focus: FormsCalls['focus'] = (look, index) => {
  const element = keptElement(look, index);
  if (!element) return false;
  giveFocus(element);
  return focused(look, index);
};

export const holds: FormsCalls['holds'] = (look, index, length) => {
  const element = keptElement(look, index);
  if (!element || !hasValue(element)) return 'nothing';
  if (!isInput(element) && !isTextArea(element)) return textOf(element).length >= length ? 'all' : 'part';
  const { value, maxLength } = element;
  return value.length >= (maxLength > 0 ? Math.min(length, maxLength) : length) ? 'all' : 'part';
};

export const insert: FormsCalls['insert'] = (look, index, text) => {
  const element = keptElement(look, index);
  if (!element) return 'stale';
  if (deepActive() !== element) return 'lost';
  editDocument('insertText', text);
  return 'done';
};

export const empty: FormsCalls['empty'] = (look, index) => {
  const element = keptElement(look, index);
  if (!element) return 'stale';
  if (deepActive() !== element) return 'lost';
  if (!hasValue(element)) return 'done';
  if (isInput(element) || isTextArea(element)) element.select();
  else getSelection()?.selectAllChildren(element);
  if (deepActive() !== element) return 'lost';
  editDocument('delete');
  return 'done';
};

function fireChange(element: Element): void {
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
}

const pickerTypes = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);

export const put: FormsCalls['put'] = (look, index, text) => {
  const element = keptElement(look, index);
  if (!element) return 'stale';
  if (!isInput(element) || !pickerTypes.has(element.type)) return 'text';
  if (isDisabled(element) || hasAttribute(element, 'readonly')) return 'disabled';
  giveFocus(element);
  const before = element.value;
  setInputValue(element, text); // by the setter of the prototype: frameworks replace that of the element
  // A value that does not fit becomes nothing, or black, or the middle of a range.
  const isTaken = /^(color|range)$/.test(element.type)
    ? element.value === text.toLowerCase() || Number(element.value) === Number(text)
    : element.value !== '';
  if (!isTaken) {
    setInputValue(element, before);
    return 'unfit';
  }
  fireChange(element);
  return 'done';
};

export const choose: FormsCalls['choose'] = (look, index, value) => {
  const element = keptElement(look, index);
  if (!element) return 'stale';
  if (!(element instanceof HTMLSelectElement)) return 'unfit';
  if (isDisabled(element)) return 'disabled';
  const option = [...element.options].find((each) => each.value === value && !each.disabled);
  if (!option) return 'unfit';
  giveFocus(element);
  if (!option.selected || element.multiple) {
    element.selectedIndex = option.index;
    fireChange(element);
  }
  return 'done';
};

export const checkedness: FormsCalls['checkedness'] = (look, index) => {
  const element = keptElement(look, index);
  if (!element) return 'stale';
  const checked = isChecked(element);
  return checked === undefined ? 'unfit' : checked ? 'on' : 'off';
};
