import { flag, object, text, type Check } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { atPoint, evaluateAt, type LookedAt } from './frame-places.ts';
import { pageCall } from './page-script.ts';
import type { Clicked } from './viewer-protocol.ts';

const LONGEST_LINK = 16_384;
const isClicked: Check<Clicked> = object({ link: text(LONGEST_LINK), selected: flag, editable: flag });

/** Runs `click`, and answers what was clicked, for a menu that the viewer draws: a headless browser has none. Undefined: the page has a menu of its own, or keeps the event to itself. */
export function clickForMenu(
  client: LocalClient,
  page: LookedAt,
  point: { x: number; y: number },
  click: () => Promise<void>,
): Promise<Clicked | undefined> {
  return atPoint(client, page, point, async (place) => {
    await evaluateAt(client, place, pageCall('watchMenu'));
    await click();
    const clicked = await evaluateAt(client, place, pageCall('takeMenu', LONGEST_LINK));
    return isClicked(clicked) ? clicked : undefined;
  });
}
