import type { Popup, PopupOption, ValueInput } from '../viewer-protocol.ts';
import { focusedElement, isGroup, isInput, isSelect } from './elements.ts';

export function readControl(inputs: readonly ValueInput[], mostOptions: number, longest: number): Popup | undefined {
  const element = focusedElement();
  if (!isSelect(element) && !isInput(element)) return undefined;
  const { left: x, top: y, width, height } = element.getBoundingClientRect();
  const box = { x, y, width, height };
  const cut = (text = '') => text.slice(0, longest);
  const optionOf = (option: HTMLOptionElement): PopupOption => {
    const group = isGroup(option.parentElement) ? option.parentElement : undefined;
    return {
      label: cut(option.label || option.text || option.value),
      value: cut(option.value),
      group: cut(group?.label),
      disabled: option.disabled || (group?.disabled ?? false),
      hidden: getComputedStyle(option).display === 'none' && isSelect(element),
    };
  };
  if (isSelect(element)) {
    // A select that the page styles itself has its list in the picture.
    if (!element.matches(':open') || getComputedStyle(element).appearance === 'base-select') return undefined;
    const options = [...element.options].slice(0, mostOptions).map(optionOf);
    return { kind: 'select', selected: element.selectedIndex, options, ...box };
  }
  const { type, value, min, max, step } = element;
  const input = inputs.find((name) => name === type);
  if (input) {
    if (!element.matches(':open')) return undefined;
    const bounds = { min: cut(min), max: cut(max), step: cut(step) };
    return { kind: 'value', input, value: cut(value), ...bounds, ...box };
  }
  if (!element.list || element.readOnly || element.disabled) return undefined;
  const typed = value.toLowerCase();
  const fits = ({ label, value: offered }: PopupOption) =>
    [label, offered].some((text) => text.toLowerCase().includes(typed)) && offered !== value;
  const options = [...element.list.options].slice(0, mostOptions).map(optionOf).filter(fits);
  return options.length === 0 ? undefined : { kind: 'suggest', options, ...box };
}

export function wayTo(index: number): { open: boolean; steps: number } | undefined {
  const element = focusedElement();
  if (!isSelect(element)) return undefined;
  const can = (option: HTMLOptionElement) =>
    !option.disabled &&
    !(isGroup(option.parentElement) && option.parentElement.disabled) &&
    getComputedStyle(option).display !== 'none';
  const options = [...element.options];
  const option = options[index];
  if (!option || !can(option)) return undefined;
  const from = element.selectedIndex;
  const between = options.slice(
    Math.min(from, index) + (from < index ? 1 : 0),
    Math.max(from, index) + (from < index ? 1 : 0),
  );
  const steps = between.filter(can).length * (from < index ? 1 : -1);
  return { open: element.matches(':open'), steps };
}

export function select(index: number): void {
  const element = focusedElement();
  if (!isSelect(element) || element.selectedIndex === index) return;
  element.selectedIndex = index;
  tellChange(element);
}

export function write(value: string, inputs: readonly string[]): void {
  const element = focusedElement();
  if (!isInput(element) || element.readOnly || element.disabled) return;
  if (!inputs.includes(element.type) && !element.list) return;
  const before = element.value;
  element.value = value;
  if (element.value !== before) tellChange(element);
}

export function isOpen(): boolean {
  const element = focusedElement();
  return (isSelect(element) || isInput(element)) && element.matches(':open');
}

/** The events that the page gets when a person changes a control. */
function tellChange(element: Element): void {
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
}
