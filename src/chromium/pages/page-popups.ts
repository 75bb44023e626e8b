import { flag, integer, list, number, object, oneOf, text, type Check } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { atFocus, evaluateAt, type LookedAt } from './frame-places.ts';
import { pageCall } from './page-script.ts';
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
    const found = await evaluateAt(client, place, pageCall('readControl', VALUE_INPUTS, MOST_OPTIONS, LONGEST_TEXT));
    if (!isSelect(found) && !isSuggest(found) && !isValue(found)) return undefined;
    return { ...found, x: found.x + place.x, y: found.y + place.y };
  });
}

/** Chooses an option of the list that is open. */
export async function chooseOption(client: LocalClient, page: LookedAt, index: number): Promise<void> {
  await atFocus(client, page, async (place) => {
    const way = await evaluateAt(client, place, pageCall('wayTo', index));
    if (!isWay(way)) return;
    if (way.open && Math.abs(way.steps) <= MOST_STEPS) {
      const arrow = way.steps > 0 ? KEYS.down : KEYS.up;
      for (let step = 0; step < Math.abs(way.steps); step++) void press(client, page, arrow);
      await press(client, page, KEYS.enter);
    } else if (way.open) await press(client, page, KEYS.escape);
    await evaluateAt(client, place, pageCall('select', index)); // nothing, if the keys have done it
  });
}

/** Sets the value of the control with the focus. Chromium refuses an invalid value. */
export async function setValue(client: LocalClient, page: LookedAt, value: string): Promise<void> {
  await closePopup(client, page);
  await atFocus(client, page, (place) => evaluateAt(client, place, pageCall('write', value, VALUE_INPUTS)));
}

/** Closes the popup without a choice. A popup takes the key; without one the page would get it, so it is not pressed then. */
export async function closePopup(client: LocalClient, page: LookedAt): Promise<void> {
  const open = await atFocus(client, page, (place) => evaluateAt(client, place, pageCall('isOpen')));
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
