import { lookScript } from './look-script.ts';
import { reachScript } from './reach-script.ts';

/**
 * Runs in an isolated world of a document and stays there. A page cannot see it or change its objects; but forms and documents let names
 * in the page hide their properties (`<input name="parentNode">`), in every world, so nodes are read with the getters of the prototypes.
 * Of the values of fields it tells only whether there is one.
 */
const install = String.raw`(() => {
  const MOST_NODES = 30000;
  const MOST_MS = 1500;
  const MOST_DEPTH = 400;
  const KEPT = 4;
  const getter = (proto, name) => {
    const { get } = Object.getOwnPropertyDescriptor(proto, name);
    return (node) => Reflect.apply(get, node, []);
  };
  const setter = (proto, name) => {
    const { set } = Object.getOwnPropertyDescriptor(proto, name);
    return (node, value) => Reflect.apply(set, node, [value]);
  };
  const method = (proto, name) => {
    const f = proto[name];
    return (node, ...args) => Reflect.apply(f, node, args);
  };
  const typeOf = getter(Node.prototype, 'nodeType');
  const parentOf = getter(Node.prototype, 'parentNode');
  const firstOf = getter(Node.prototype, 'firstChild');
  const nextOf = getter(Node.prototype, 'nextSibling');
  const previousOf = getter(Node.prototype, 'previousSibling');
  const wordsOf = (node) => String(getter(Node.prototype, 'textContent')(node)).slice(0, 5000);
  const ownerOf = getter(Node.prototype, 'ownerDocument');
  const previousElementOf = getter(Element.prototype, 'previousElementSibling');
  const childrenOf = (element) => [...getter(Element.prototype, 'children')(element)];
  const isConnected = getter(Node.prototype, 'isConnected');
  const rootOf = method(Node.prototype, 'getRootNode');
  const tagOf = getter(Element.prototype, 'localName');
  const shadowOf = getter(Element.prototype, 'shadowRoot');
  const slotOf = getter(Element.prototype, 'assignedSlot');
  const attribute = method(Element.prototype, 'getAttribute');
  const hasAttribute = method(Element.prototype, 'hasAttribute');
  const matches = method(Element.prototype, 'matches');
  const rectOf = method(Element.prototype, 'getBoundingClientRect');
  const rectsOf = method(Element.prototype, 'getClientRects');
  const checkVisibility = method(Element.prototype, 'checkVisibility');
  const scrollTo = method(Element.prototype, 'scrollIntoView');
  const documentElementOf = getter(Document.prototype, 'documentElement');
  const rootElement = () => documentElementOf(document);
  const stateOf = getter(Document.prototype, 'readyState');
  const titleOf = getter(Document.prototype, 'title');
  const queryAll = (root, selector) =>
    Reflect.apply((root instanceof Document ? Document : root instanceof ShadowRoot ? DocumentFragment : Element).prototype.querySelectorAll, root, [selector]);
  const byId = (root, id) =>
    Reflect.apply((root instanceof Document ? Document : DocumentFragment).prototype.getElementById, root, [id]);
  const atPoint = (root, x, y) =>
    Reflect.apply((root instanceof Document ? Document : ShadowRoot).prototype.elementFromPoint, root, [x, y]);
  const activeIn = (root) => Reflect.apply(Object.getOwnPropertyDescriptor((root instanceof Document ? Document : ShadowRoot).prototype, 'activeElement').get, root, []);

  const deadline = (ms) => {
    const started = performance.now();
    return () => performance.now() - started > ms;
  };
  const isElement = (node) => typeOf(node) === 1;
  const collapsed = (text, most) => text.replace(/\s+/g, ' ').trim().slice(0, most);
  const said = (element, name, most = 200) => {
    const value = attribute(element, name);
    return value === null ? undefined : collapsed(value, most);
  };
  /** The parent as it is drawn: through slots and out of shadow trees. */
  const above = (node) => {
    const slot = isElement(node) ? slotOf(node) : null;
    if (slot) return slot;
    const parent = parentOf(node);
    if (!parent) return undefined;
    if (parent instanceof ShadowRoot) return parent.host;
    return typeOf(parent) === 1 ? parent : undefined;
  };
  const closest = (element, test) => {
    for (let at = element, steps = 0; at && steps < 200; at = above(at), steps++) if (test(at)) return at;
    return undefined;
  };
  /** The children as they are drawn. */
  const below = (element) => {
    const shadow = shadowOf(element);
    const list = [];
    if (!shadow && tagOf(element) === 'slot') {
      const assigned = element.assignedNodes();
      if (assigned.length > 0) return assigned;
    }
    for (let child = firstOf(shadow || element); child && list.length < 5000; child = nextOf(child)) list.push(child);
    return list;
  };
  const deepAt = (x, y) => {
    let hit = atPoint(document, x, y);
    for (let depth = 0; hit && depth < 50; depth++) {
      const shadow = shadowOf(hit);
      const inner = shadow && atPoint(shadow, x, y);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    return hit;
  };
  const deepActive = () => {
    let at = activeIn(document);
    for (let depth = 0; at && depth < 50; depth++) {
      const shadow = shadowOf(at);
      const inner = shadow && activeIn(shadow);
      if (!inner) break;
      at = inner;
    }
    return at;
  };
  const isWithin = (inner, outer) => closest(inner, (at) => at === outer) !== undefined;

  /** References: the elements of the last few looks. */
  const kept = new Map();
  const keep = (look, list) => {
    kept.set(look, list);
    while (kept.size > KEPT) kept.delete(kept.keys().next().value);
  };
  const kin = (look, index) => {
    const element = kept.get(look)?.[index];
    return element && isConnected(element) && ownerOf(element) === document ? element : undefined;
  };

  /** When the document last changed. A node that changes all the time is a clock or an animation, and is passed over. */
  let changedAt = performance.now();
  let changes = new WeakMap();
  const observer = new MutationObserver((records) => {
    for (const { target } of records.slice(0, 500)) {
      const times = (changes.get(target) || 0) + 1;
      changes.set(target, times);
      if (times <= 10) changedAt = performance.now();
    }
  });
  const observed = new WeakSet();
  const observe = (root) => {
    if (observed.has(root)) return;
    observed.add(root);
    observer.observe(root, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ['class', 'hidden', 'disabled', 'open', 'type', 'aria-invalid', 'aria-hidden', 'aria-busy', 'aria-expanded'],
    });
  };
  observe(document);
  const eachRoot = (visit) => {
    const roots = [document];
    let seen = 0;
    while (roots.length > 0 && seen < MOST_NODES) {
      const root = roots.pop();
      visit(root);
      for (const element of queryAll(root, '*')) {
        if (++seen > MOST_NODES) break;
        const shadow = shadowOf(element);
        if (shadow) roots.push(shadow);
      }
    }
  };
  const quiet = {
    /** How long nothing has changed, in milliseconds. With fresh, the counts of nodes that change all the time are reset. */
    since(fresh) {
      if (fresh) changes = new WeakMap();
      eachRoot(observe);
      return { still: performance.now() - changedAt, state: stateOf(document) };
    },
  };
  ${lookScript}
  ${reachScript}
  const world = { look, find, aim, quiet, focused, focus, holds, insert, empty, put, choose, checkedness, storage };
  Object.defineProperty(globalThis, 'corralForms', { value: world });
  return world;
})()`;

/** An expression that calls a function of the script, which it installs in a document that does not have it yet. */
export function inPage(call: string): string {
  return `(globalThis.corralForms ?? ${install}).${call}`;
}

/** The same in a document that has the script; an exception in one that does not. */
export function inReadPage(call: string): string {
  return `globalThis.corralForms.${call}`;
}
