import { flag, integer, list, number, object, oneOf, text, type Check } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { atFocus, evaluateAt, type LookedAt } from './frame-places.ts';
import { VALUE_INPUTS, type Popup, type PopupOption } from './viewer-protocol.ts';

/**
 * The popups of form controls in a headless browser, from outside. Chromium opens them, but no picture of the page contains them. So the
 * control with the focus is read from an isolated world, and a choice is made by the keys that its popup takes: the page gets the same
 * events as from a person with a window.
 */

/** The most options that are drawn, and the longest text of one: together less than a message may have. */
const MOST_OPTIONS = 1000;
const LONGEST_TEXT = 100;
/** More keys than these are not sent to get to an option: the value is set instead. */
const MOST_STEPS = 200;

const short = text(LONGEST_TEXT);
const pixels = number(-1e7, 1e7);
const box = { x: pixels, y: pixels, width: pixels, height: pixels };
const isOption: Check<PopupOption> = object({ label: short, value: short, group: short, disabled: flag, hidden: flag });
const options = (value: unknown): value is PopupOption[] => list(isOption)(value) && value.length <= MOST_OPTIONS;
const isSelect = object({ kind: oneOf('select'), selected: integer(-1, 1e6), options, ...box });
const isSuggest = object({ kind: oneOf('suggest'), options, ...box });
const isValue = object({
  kind: oneOf('value'),
  input: oneOf(...VALUE_INPUTS),
  value: short,
  min: short,
  max: short,
  step: short,
  ...box,
});
const isWay = object({ open: flag, steps: integer(-1e6, 1e6) });

/** The popup of the control with the focus, if it has one. */
export function readPopup(client: LocalClient, page: LookedAt): Promise<Popup | undefined> {
  return atFocus(client, page, async (place) => {
    const bounds = `${JSON.stringify(VALUE_INPUTS)}, ${MOST_OPTIONS}, ${LONGEST_TEXT}`;
    const found = await evaluateAt(client, place, `(${readControl.toString()})(${bounds})`);
    if (!isSelect(found) && !isSuggest(found) && !isValue(found)) return undefined;
    return { ...found, x: found.x + place.x, y: found.y + place.y };
  });
}

/** Chooses an option of the list that is open. */
export async function chooseOption(client: LocalClient, page: LookedAt, index: number): Promise<void> {
  await atFocus(client, page, async (place) => {
    const way = await evaluateAt(client, place, `(${wayTo.toString()})(${index})`);
    if (!isWay(way)) return;
    if (way.open && Math.abs(way.steps) <= MOST_STEPS) {
      const arrow = way.steps > 0 ? KEYS.down : KEYS.up;
      for (let step = 0; step < Math.abs(way.steps); step++) void press(client, page, arrow);
      await press(client, page, KEYS.enter);
    } else if (way.open) await press(client, page, KEYS.escape);
    await evaluateAt(client, place, `(${select.toString()})(${index})`); // nothing, if the keys have done it
  });
}

/** Sets the value of the control with the focus. Chromium refuses one that does not fit the control. */
export async function setValue(client: LocalClient, page: LookedAt, value: string): Promise<void> {
  await closePopup(client, page);
  await atFocus(client, page, (place) =>
    evaluateAt(client, place, `(${write.toString()})(${JSON.stringify(value)}, ${JSON.stringify(VALUE_INPUTS)})`),
  );
}

/** Closes the popup without a choice. A popup takes the key; without one the page would get it, so it is not pressed then. */
export async function closePopup(client: LocalClient, page: LookedAt): Promise<void> {
  const open = await atFocus(client, page, (place) => evaluateAt(client, place, `(${isOpen.toString()})()`));
  if (open === true) await press(client, page, KEYS.escape);
}

const KEYS = {
  up: { key: 'ArrowUp', code: 'ArrowUp', windowsVirtualKeyCode: 38 },
  down: { key: 'ArrowDown', code: 'ArrowDown', windowsVirtualKeyCode: 40 },
  enter: { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13 },
  escape: { key: 'Escape', code: 'Escape', windowsVirtualKeyCode: 27 },
};

async function press(client: LocalClient, { sessionId }: LookedAt, key: (typeof KEYS)['up']): Promise<void> {
  await client.send('Input.dispatchKeyEvent', { ...key, type: 'rawKeyDown' }, sessionId).catch(() => {});
}

// The rest runs in the page, as text: each function alone. `dom` exists for the compiler, which has no browser types here.

/* oxlint-disable typescript/no-explicit-any */

function readControl(inputs: readonly string[], mostOptions: number, longest: number): unknown {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const name = element?.localName;
  if (name !== 'select' && name !== 'input') return undefined;
  const { left: x, top: y, width, height } = element.getBoundingClientRect();
  const box = { x, y, width, height };
  const cut = (text: any) => String(text ?? '').slice(0, longest);
  const optionOf = (option: any) => {
    const group = option.parentElement?.localName === 'optgroup' ? option.parentElement : undefined;
    return {
      label: cut(option.label || option.text || option.value),
      value: cut(option.value),
      group: cut(group?.label),
      disabled: option.disabled || (group?.disabled ?? false),
      hidden: dom.getComputedStyle(option).display === 'none' && name === 'select',
    };
  };
  if (name === 'select') {
    // A select that the page styles itself has its list in the picture.
    if (!element.matches(':open') || dom.getComputedStyle(element).appearance === 'base-select') return undefined;
    const options = [...element.options].slice(0, mostOptions).map(optionOf);
    return { kind: 'select', selected: element.selectedIndex, options, ...box };
  }
  const { type, value, min, max, step } = element;
  if (inputs.includes(type)) {
    if (!element.matches(':open')) return undefined;
    const bounds = { min: cut(min), max: cut(max), step: cut(step) };
    return { kind: 'value', input: type, value: cut(value), ...bounds, ...box };
  }
  if (!element.list || element.readOnly || element.disabled) return undefined;
  const typed = String(value).toLowerCase();
  const fits = ({ label, value }: any) =>
    [label, value].some((text) => String(text).toLowerCase().includes(typed)) && String(value) !== element.value;
  const options = [...element.list.options].slice(0, mostOptions).map(optionOf).filter(fits);
  return options.length === 0 ? undefined : { kind: 'suggest', options, ...box };
}

/** How many options the popup has to go down to this one, counting those that it can choose. */
function wayTo(index: number): unknown {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (element?.localName !== 'select') return undefined;
  const can = (option: any) =>
    !option.disabled &&
    !(option.parentElement?.localName === 'optgroup' && option.parentElement.disabled) &&
    dom.getComputedStyle(option).display !== 'none';
  const options = [...element.options];
  if (!options[index] || !can(options[index])) return undefined;
  const from = element.selectedIndex;
  const between = options.slice(
    Math.min(from, index) + (from < index ? 1 : 0),
    Math.max(from, index) + (from < index ? 1 : 0),
  );
  const steps = between.filter(can).length * (from < index ? 1 : -1);
  return { open: element.matches(':open'), steps };
}

function select(index: number): void {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (element?.localName !== 'select' || element.selectedIndex === index) return;
  element.selectedIndex = index;
  element.dispatchEvent(new dom.Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new dom.Event('change', { bubbles: true }));
}

function write(value: string, inputs: readonly string[]): void {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (element?.localName !== 'input' || element.readOnly || element.disabled) return;
  if (!inputs.includes(element.type) && !element.list) return;
  const before = element.value;
  element.value = value;
  if (element.value === before) return;
  element.dispatchEvent(new dom.Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new dom.Event('change', { bubbles: true }));
}

function isOpen(): boolean {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return /^(select|input)$/.test(element?.localName) && element.matches(':open');
}
