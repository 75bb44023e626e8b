import { flag, object, text, type Check } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { atPoint, evaluateAt, type LookedAt } from './frame-places.ts';
import type { Clicked } from './viewer-protocol.ts';

/** What was right-clicked, for a menu that the viewer draws: a headless browser has none. */

const LONGEST_LINK = 16_384;
const isClicked: Check<Clicked> = object({ link: text(LONGEST_LINK), selected: flag, editable: flag });

/** Runs `click`, and answers what was clicked. Undefined: the page has a menu of its own, or keeps the event to itself. */
export function clickForMenu(
  client: LocalClient,
  page: LookedAt,
  point: { x: number; y: number },
  click: () => Promise<void>,
): Promise<Clicked | undefined> {
  return atPoint(client, page, point, async (place) => {
    await evaluateAt(client, place, `(${watchMenu.toString()})()`);
    await click();
    const clicked = await evaluateAt(client, place, `globalThis.corralMenu?.(${LONGEST_LINK})`);
    return isClicked(clicked) ? clicked : undefined;
  });
}

// The rest runs in the page, as text. `dom` exists for the compiler, which has no browser types here.

/* oxlint-disable typescript/no-explicit-any */

/** Defines a function that returns what was clicked since, unless the page prevented its menu. */
function watchMenu(): void {
  const dom: any = globalThis;
  let seen: any;
  const listen = (event: any) => (seen = event);
  dom.addEventListener('contextmenu', listen, true);
  dom.corralMenu = (longest: number) => {
    dom.removeEventListener('contextmenu', listen, true);
    delete dom.corralMenu;
    if (!seen || seen.defaultPrevented) return undefined;
    let target = dom.document.elementFromPoint(seen.clientX, seen.clientY);
    for (let inner; (inner = target?.shadowRoot?.elementFromPoint(seen.clientX, seen.clientY)) && inner !== target;)
      target = inner;
    const link = target?.closest?.('a[href], area[href]')?.href;
    const field = target?.closest?.('input, textarea');
    const selected = field ? field.selectionStart !== field.selectionEnd : String(dom.getSelection() ?? '') !== '';
    return {
      link: typeof link === 'string' && link.length <= longest ? link : '',
      selected: selected && field?.type !== 'password',
      editable: target?.isContentEditable || Boolean(field && !field.readOnly && !field.disabled),
    };
  };
}
