import {
  NavigationTracker,
  type NavigationState,
} from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/NavigationTracker.js';
import { beginningOf } from '../../lib/text.ts';

/** The newest navigations of a frame: events may still come for them. */
const MOST_WHOLE = 20;
const LONGEST_OLD = 1000;

const made = new WeakMap<NavigationTracker, NavigationState[]>();

/** The mapper keeps every navigation of a frame, each with its address of up to 2 MB. From now on it keeps the beginnings of the old ones. */
export function shortenOldNavigations(): void {
  const { createPendingNavigation } = NavigationTracker.prototype;
  NavigationTracker.prototype.createPendingNavigation = function createCounted(...given) {
    const navigation = createPendingNavigation.apply(this, given);
    const all = made.get(this) ?? [];
    made.set(this, all);
    all.push(navigation);
    if (all.length <= MOST_WHOLE) return navigation;
    // The document that is there may have been loaded long ago.
    const at = all.findIndex(({ url }) => url !== this.url);
    for (const old of all.splice(Math.max(at, 0), 1)) if (at !== -1) old.url = beginningOf(old.url, LONGEST_OLD);
    return navigation;
  };
}
