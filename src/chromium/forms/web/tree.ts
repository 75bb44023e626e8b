import { MOST_NODES } from './bounds.ts';
import {
  activeIn,
  atPoint,
  firstChildOf,
  isElement,
  nextOf,
  parentOf,
  queryAll,
  shadowOf,
  slotOf,
  tagOf,
  type Root,
} from './dom.ts';

/** The parent as it is drawn: through slots and out of shadow trees. */
export function above(node: Node): Element | undefined {
  const slot = isElement(node) ? slotOf(node) : null;
  if (slot) return slot;
  const parent = parentOf(node);
  if (!parent) return undefined;
  if (parent instanceof ShadowRoot) return parent.host;
  return isElement(parent) ? parent : undefined;
}

/** The children as they are drawn. */
export function below(element: Element): Node[] {
  const shadow = shadowOf(element);
  if (!shadow && tagOf(element) === 'slot' && element instanceof HTMLSlotElement) {
    const assigned = element.assignedNodes();
    if (assigned.length > 0) return assigned;
  }
  const list: Node[] = [];
  for (let child = firstChildOf(shadow ?? element); child && list.length < 5000; child = nextOf(child))
    list.push(child);
  return list;
}

/** The element itself or the nearest one above it that passes the test. */
export function closest(element: Element, test: (at: Element) => boolean): Element | undefined {
  let at: Element | undefined = element;
  for (let steps = 0; at && steps < 200; at = above(at), steps++) if (test(at)) return at;
  return undefined;
}

export const isWithin = (inner: Element, outer: Element) => closest(inner, (at) => at === outer) !== undefined;

/** Whether an element or one above it passes the test. Each element is tested once. */
export function remembered(test: (element: Element) => boolean): (element: Element) => boolean {
  const known = new Map<Element, boolean>();
  return (element) => {
    const path: Element[] = [];
    let answer = false;
    let at: Element | undefined = element;
    for (let steps = 0; at && steps < 200; at = above(at), steps++) {
      const before = known.get(at);
      if (before !== undefined) {
        answer = before;
        break;
      }
      path.push(at);
      if (test(at)) {
        answer = true;
        break;
      }
    }
    for (const each of path) known.set(each, answer);
    return answer;
  };
}

/** The element at a point of the viewport, inside shadow trees too. */
export const deepAt = (x: number, y: number) => deepest((root) => atPoint(root, x, y));

/** The element with the focus, inside shadow trees too. */
export const deepActive = () => deepest(activeIn);

function deepest(find: (root: Root) => Element | null): Element | null {
  let found = find(document);
  for (let depth = 0; found && depth < 50; depth++) {
    const shadow = shadowOf(found);
    const inner = shadow && find(shadow);
    if (!inner || inner === found) break;
    found = inner;
  }
  return found;
}

/** The document and its shadow trees. */
export function eachRoot(visit: (root: Root) => void): void {
  const roots: Root[] = [document];
  let seen = 0;
  for (let root; seen < MOST_NODES && (root = roots.pop());) {
    visit(root);
    for (const element of queryAll(root, '*')) {
      if (++seen > MOST_NODES) break;
      const shadow = shadowOf(element);
      if (shadow) roots.push(shadow);
    }
  }
}
