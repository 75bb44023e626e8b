/**
 * Runs in an isolated world of every document, so pages see neither it nor its binding. It must not throw: clients with Runtime enabled
 * would receive the exception. Text that is typed into password fields, fields for one-time codes and fields with hidden text is not
 * captured, nor are keys whose field is in a closed shadow tree and cannot be seen.
 */
export function interactionScript(binding: string): string {
  return `(() => {
  const tell = globalThis[${JSON.stringify(binding)}];
  if (typeof tell !== 'function' || globalThis.corralListens) return;
  globalThis.corralListens = true;
  const SETTLED_MS = 200;
  const MOST_TEXT = 200;
  const secretHints = /\\b(one-time-code|current-password|new-password|cc-csc)\\b/;
  const onceSecret = new WeakSet();

  const safely = (listener) => (event) => {
    try {
      if (event.isTrusted) listener(event);
    } catch {}
  };
  const send = (message) => tell(JSON.stringify(message));
  const targetOf = (event) => {
    const first = event.composedPath()[0];
    return first instanceof Element ? first : document.documentElement;
  };

  const isSecret = (element) => {
    if (onceSecret.has(element)) return true;
    const found =
      (element instanceof HTMLInputElement && element.type === 'password') ||
      secretHints.test((element.getAttribute('autocomplete') || '').toLowerCase()) ||
      getComputedStyle(element).webkitTextSecurity !== 'none';
    if (found) onceSecret.add(element); // it stays secret when the page shows its text
    return found;
  };
  // A field that is in the document as a password field may be shown as text when it gets the focus.
  const noteSecrets = () => {
    for (const field of document.querySelectorAll('input[type="password"]')) onceSecret.add(field);
  };

  const isEditable = (element) =>
    element instanceof HTMLInputElement ||
    element instanceof HTMLTextAreaElement ||
    element instanceof HTMLSelectElement ||
    element.isContentEditable;
  /** Whether a closed shadow tree may hold the field that has the focus. */
  const mayHideField = (element) =>
    !isEditable(element) &&
    element !== document.body &&
    element !== document.documentElement &&
    !(element instanceof HTMLAnchorElement || element instanceof HTMLButtonElement || element instanceof SVGElement);

  const selectorOf = (element) => {
    const steps = [];
    for (let at = element; at instanceof Element && steps.length < 8; ) {
      const tag = at.localName;
      if (at.id && at.id.length <= 100) {
        steps.unshift(tag + '#' + CSS.escape(at.id));
        break;
      }
      const parent = at.parentElement;
      if (!parent) {
        steps.unshift(tag);
        const root = at.getRootNode();
        at = root instanceof ShadowRoot ? root.host : null;
        continue;
      }
      let place = 1;
      let alike = 0;
      for (let other = parent.firstElementChild; other; other = other.nextElementSibling) {
        if (other.localName !== tag) continue;
        alike += 1;
        if (other === at) place = alike;
        if (alike > 1000) break;
      }
      steps.unshift(alike > 1 ? tag + ':nth-of-type(' + place + ')' : tag);
      at = parent;
    }
    return steps.join(' > ').slice(0, 1000);
  };

  const textOf = (element) => {
    if (isSecret(element)) return '';
    if (element instanceof HTMLInputElement)
      return /^(button|submit|reset)$/.test(element.type) ? element.value.trim().slice(0, MOST_TEXT) : '';
    if (isEditable(element)) return '';
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let text = '';
    for (let seen = 0; text.length < MOST_TEXT && seen < 500 && walker.nextNode(); seen++) {
      const holder = walker.currentNode.parentElement;
      if (!holder || /^(SCRIPT|STYLE|NOSCRIPT|TEXTAREA|OPTION)$/.test(holder.tagName)) continue;
      if (holder.isContentEditable || !holder.checkVisibility()) continue;
      text += ' ' + walker.currentNode.data;
    }
    return text.replace(/\\s+/g, ' ').trim().slice(0, MOST_TEXT);
  };

  addEventListener('click', safely((event) => {
    noteSecrets();
    const element = targetOf(event);
    const { clientX, clientY } = event;
    send({ type: 'click', x: Math.round(clientX), y: Math.round(clientY), selector: selectorOf(element), tag: element.tagName.toUpperCase(), text: textOf(element) });
  }), { capture: true, passive: true });

  addEventListener('focusin', safely((event) => {
    noteSecrets();
    isSecret(targetOf(event));
  }), { capture: true, passive: true });

  addEventListener('keydown', safely((event) => {
    const element = targetOf(event);
    if (event.repeat || isSecret(element) || mayHideField(element)) return;
    send({ type: 'key', key: event.key, selector: selectorOf(element), tag: element.tagName.toUpperCase() });
  }), { capture: true, passive: true });

  const scrolls = new Map();
  const settledAt = new WeakMap();
  addEventListener('scroll', safely((event) => {
    const element = event.target instanceof Document ? document.scrollingElement || document.documentElement : event.target;
    if (!(element instanceof Element)) return;
    const known = scrolls.get(element) || { from: settledAt.get(element) || { x: 0, y: 0 }, timer: 0 };
    scrolls.set(element, known);
    clearTimeout(known.timer);
    known.timer = setTimeout(() => {
      try {
        scrolls.delete(element);
        const to = { x: Math.round(element.scrollLeft), y: Math.round(element.scrollTop) };
        settledAt.set(element, to);
        if (to.x !== known.from.x || to.y !== known.from.y)
          send({ type: 'scroll', from_x: known.from.x, from_y: known.from.y, to_x: to.x, to_y: to.y, selector: selectorOf(element) });
      } catch {}
    }, SETTLED_MS);
  }), { capture: true, passive: true });
})();`;
}
