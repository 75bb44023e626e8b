/** The part of the page's script that finds elements again and gets them ready to be used. */
export const reachScript = String.raw`
  /** Labels stand for inputs that are not drawn themselves, as of checkboxes with a picture. */
  const standIn = (element) =>
    [...(element.labels || [])].find((label) => shows(label) && isSized(rectOf(label)));

  /** Scrolls it into view and answers where to click, or why not. */
  const aim = (look, index) => {
    const element = kin(look, index);
    if (!element) return { why: 'stale' };
    if (matches(element, ':disabled')) return { why: 'disabled' };
    let target = element;
    if (!isVisible(element)) {
      target = standIn(element);
      if (!target) return { why: 'hidden' };
    }
    const rect = rectOf(target);
    const inView = rect.top >= 0 && rect.left >= 0 && rect.bottom <= innerHeight && rect.right <= innerWidth;
    if (!inView || covers(target)) scrollTo(target, { block: 'center', inline: 'center', behavior: 'instant' });
    let at = middle(target);
    if (!at) return { why: 'hidden' };
    if (covers(target)) {
      const other = target === element ? standIn(element) : undefined;
      if (!other || covers(other)) return { why: 'covered', ...at };
      target = other;
      at = middle(other);
    }
    return at;
  };
  const covers = (target) => {
    const at = middle(target);
    const hit = at && deepAt(at.x, at.y);
    return !hit || !related(hit, target);
  };

  const focused = (look, index) => {
    const element = kin(look, index);
    return element !== undefined && deepActive() === element && document.hasFocus();
  };
  const focus = (look, index) => {
    const element = kin(look, index);
    if (!element) return false;
    HTMLElement.prototype.focus.call(element);
    return focused(look, index);
  };
  /** How much is there of so many characters that were typed. Only the number is an argument: the text is no part of a script. */
  const holds = (look, index, length) => {
    const element = kin(look, index);
    if (!element || !hasValue(element)) return 'nothing';
    const tag = tagOf(element);
    const has = (tag === 'input' || tag === 'textarea' ? element.value : wordsOf(element)).length;
    return has >= (element.maxLength > 0 ? Math.min(length, element.maxLength) : length) ? 'all' : 'part';
  };
  /**
   * Edits as the keyboard does, in this document and at this moment. A key is sent to whatever has the focus when it arrives, which may be
   * a frame of another site by then; this reaches the element or nothing.
   */
  const edit = method(Document.prototype, 'execCommand');
  const insert = (look, index, text) => {
    if (!kin(look, index)) return 'stale';
    if (deepActive() !== kin(look, index)) return 'lost';
    edit(document, 'insertText', false, text);
    return 'done';
  };
  const empty = (look, index) => {
    const element = kin(look, index);
    if (!element) return 'stale';
    if (deepActive() !== element) return 'lost';
    if (!hasValue(element)) return 'done';
    const tag = tagOf(element);
    if (tag === 'input' || tag === 'textarea') element.select();
    else getSelection().selectAllChildren(element);
    if (deepActive() !== element) return 'lost';
    edit(document, 'delete');
    return 'done';
  };
  /**
   * Inputs with a picker of their own take no text by an edit: their value is set as a whole, by the setter of the prototype, which
   * frameworks listen behind. Returns 'text' for every other element.
   */
  const wholeTypes = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
  const setValue = setter(HTMLInputElement.prototype, 'value');
  const put = (look, index, text) => {
    const element = kin(look, index);
    if (!element) return 'stale';
    if (tagOf(element) !== 'input' || !wholeTypes.has(element.type)) return 'text';
    if (matches(element, ':disabled') || hasAttribute(element, 'readonly')) return 'disabled';
    HTMLElement.prototype.focus.call(element);
    const before = element.value;
    setValue(element, text);
    // What does not fit becomes nothing, or black, or the middle of a range.
    const isTaken = /^(color|range)$/.test(element.type)
      ? element.value === text.toLowerCase() || Number(element.value) === Number(text)
      : element.value !== '';
    if (!isTaken) {
      setValue(element, before);
      return 'unfit';
    }
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
    return 'done';
  };
  const choose = (look, index, value) => {
    const element = kin(look, index);
    if (!element) return 'stale';
    if (!(element instanceof HTMLSelectElement)) return 'unfit';
    if (matches(element, ':disabled')) return 'disabled';
    const option = [...element.options].find((each) => each.value === value && !each.disabled);
    if (!option) return 'unfit';
    HTMLElement.prototype.focus.call(element);
    if (!option.selected || element.multiple) {
      element.selectedIndex = option.index;
      element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
      element.dispatchEvent(new Event('change', { bubbles: true }));
    }
    return 'done';
  };
  const checkedness = (look, index) => {
    const element = kin(look, index);
    if (!element) return 'stale';
    const isBox = tagOf(element) === 'input' && /^(checkbox|radio)$/.test(element.type);
    const state = isBox ? element.checked : bool(element, 'aria-checked');
    return state === undefined ? 'unfit' : state ? 'on' : 'off';
  };

  /** For each selector the number of usable elements that it names, two for several; the only ones are kept under its place. */
  const find = (number, selectors) => {
    const usable = (element) => isVisible(element) && !matches(element, ':disabled');
    let controls;
    const late = deadline(MOST_MS * 2);
    const all = () => (controls ??= survey().controls.filter((element) => !late() && usable(element)));
    const roots = [];
    eachRoot((root) => roots.push(root));
    const named = (selector) => {
      const [, kind, words] = /^(label|placeholder|text)=(.*)$/s.exec(selector) || [];
      if (!kind) return roots.flatMap((root) => [...queryAll(root, selector)].slice(0, 50)).filter(usable);
      const wanted = collapsed(words, 200).toLowerCase();
      const isIt = (text) => !!text && text.toLowerCase().slice(0, wanted.length === 100 ? 100 : 200) === wanted;
      return all().filter((element) => {
        if (kind === 'placeholder') return isIt(said(element, 'placeholder', 100));
        const labels = labelsOf(element);
        return (kind === 'label' && labels.some(isIt)) || isIt(nameOf(element, labels));
      });
    };
    const found = selectors.map((selector) => {
      try {
        return named(selector);
      } catch {
        return []; // not a selector
      }
    });
    keep(number, found.map((elements) => elements[0]));
    return found.map(({ length }) => Math.min(2, length));
  };

  /** A hash of the origin's storage, for comparisons only. */
  const storage = (seed) => {
    let hash = seed >>> 0;
    let keys = 0;
    const mix = (text) => {
      for (let i = 0; i < text.length && i < 20000; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
      hash = Math.imul(hash ^ text.length, 2246822519) >>> 0;
    };
    for (const kind of ['localStorage', 'sessionStorage']) {
      try {
        const store = globalThis[kind];
        const names = Object.keys(store).sort().slice(0, 1000);
        keys += names.length;
        for (const name of names) {
          mix(name);
          mix(store.getItem(name) || '');
        }
      } catch {}
    }
    return { origin: String(globalThis.origin).slice(0, 300), keys, hash };
  };
`;
