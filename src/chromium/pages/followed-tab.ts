import type { Mux } from '../cdp/mux.ts';
import { isAttached, isEvaluated } from '../cdp/shapes.ts';
import type { Viewer } from './viewer.ts';

/**
 * Follows the tab that a client of the session made or brought to the front last. `show` is called with it, unless the viewer stays on
 * one tab.
 */
export function viewerFollowing(viewer: Viewer, fronts: Pick<Mux, 'front' | 'onFront'>, show: (id: string) => void) {
  const { client } = viewer;
  let on = true;
  /** The tab to follow, also while the viewer stays on another. */
  let leader = fronts.front;
  /** New tabs are numbered: the last tab, and the last visible tab. */
  let newest = 0;
  let newestVisible = 0;
  void client.closed.then(fronts.onFront(lead));

  function lead(id: string): void {
    leader = id;
    if (on && !viewer.over) show(id);
  }

  async function isVisible(targetId: string): Promise<boolean> {
    try {
      const { sessionId } = await client.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
      const question = { expression: 'document.visibilityState === "visible"', returnByValue: true };
      const { result } = await client
        .ask(isEvaluated, 'Runtime.evaluate', question, sessionId)
        .finally(() => client.send('Target.detachFromTarget', { sessionId }).catch(() => {}));
      return result['value'] === true;
    } catch {
      return false; // the tab is closed
    }
  }

  return {
    lead,
    get on() {
      return on;
    },
    get leader() {
      return leader;
    },

    /** A tab was created. A full browser does not paint a tab that was opened in the background. */
    async created(id: string): Promise<void> {
      newest += 1;
      const turn = newest;
      if (!(await isVisible(id)) || turn < newestVisible) return;
      newestVisible = turn;
      lead(id);
    },

    set(value: boolean): void {
      on = value;
      if (leader !== undefined) lead(leader);
    },
  };
}
