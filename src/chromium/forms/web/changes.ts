import { readyState, type Root } from './dom.ts';
import { eachRoot } from './tree.ts';

/** When the document last changed. A node that changes all the time is a clock or an animation, and is passed over. */
let changedAt = performance.now();
let changes = new WeakMap<Node, number>();
const MOST_CHANGES = 10;

const observer = new MutationObserver((records) => {
  for (const { target } of records.slice(0, 500)) {
    const times = (changes.get(target) ?? 0) + 1;
    changes.set(target, times);
    if (times <= MOST_CHANGES) changedAt = performance.now();
  }
});

const observed = new WeakSet<Root>();

export function observe(root: Root): void {
  if (observed.has(root)) return;
  observed.add(root);
  observer.observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeFilter: [
      'class',
      'hidden',
      'disabled',
      'open',
      'type',
      'aria-invalid',
      'aria-hidden',
      'aria-busy',
      'aria-expanded',
    ],
  });
}

export function stillSince(fresh: boolean) {
  if (fresh) changes = new WeakMap();
  eachRoot(observe);
  return { still: performance.now() - changedAt, state: readyState() };
}
