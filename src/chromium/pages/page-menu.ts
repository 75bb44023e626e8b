import { flag, object, text, type Check } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { atPoint, evaluateAt, type LookedAt } from './frame-places.ts';
import { pageCall } from './page-script.ts';
import type { Clicked } from './viewer-protocol.ts';

const LONGEST_LINK = 16_384;
const isClicked: Check<Clicked> = object({ link: text(LONGEST_LINK), selected: flag, editable: flag });

/**
 * Runs `click`, and returns the clicked element for a menu that the viewer draws: a headless browser has no menu. Undefined: the page has its
 * own menu, or handles the event itself.
 */
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
