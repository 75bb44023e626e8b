import { BrowsingContextImpl } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/BrowsingContextImpl.js';

type Remove = () => void;

/** What removes the listeners that are being added; undefined while they are not noted. */
let noting: Remove[] | undefined;

/** To be called for each listener that is added. */
export function noteListener(remove: Remove): void {
  noting?.push(remove);
}

/** Notes the listeners that are added during some work. The result removes them. */
function notingListeners<T>(work: () => T): { result: T; remove: Remove } {
  const outer = noting;
  const mine: Remove[] = (noting = []);
  try {
    const result = work();
    return { result, remove: () => mine.splice(0).forEach((each) => each()) };
  } finally {
    noting = outer;
  }
}

const removals = new WeakMap<BrowsingContextImpl, Remove[]>();

/**
 * A frame adds some fifteen listeners to the session of its tab, and the mapper never removes them: with them it keeps every frame that a page
 * ever had. 20,000 took 175 MB. From now on they are removed with their frame.
 */
export function removeListenersOfFrames(): void {
  const { create } = BrowsingContextImpl;
  const { dispose, updateCdpTarget } = BrowsingContextImpl.prototype;

  BrowsingContextImpl.create = function createNoted(...given) {
    const { result, remove } = notingListeners(() => create.apply(this, given));
    removals.set(result, [remove]);
    return result;
  };

  BrowsingContextImpl.prototype.updateCdpTarget = function updateNoted(target) {
    const { remove } = notingListeners(() => updateCdpTarget.call(this, target));
    removals.get(this)?.push(remove);
  };

  BrowsingContextImpl.prototype.dispose = function disposeWithListeners(emits) {
    try {
      dispose.call(this, emits);
    } finally {
      for (const remove of removals.get(this) ?? []) remove();
      removals.delete(this);
    }
  };
}
