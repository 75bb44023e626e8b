import { MOST_ELEMENTS, MOST_FRAME_CHARACTERS, MOST_NEAR, MOST_OPTIONS, MOST_TEXT, MOST_TEXTS } from './bounds.ts';

/** The part of the page's script that reads what a person sees and what assistive technology reads. */
export const lookScript = String.raw`
  const clickRoles = new Set(['button', 'link', 'tab', 'menuitem', 'menuitemradio', 'option', 'checkbox', 'radio', 'switch', 'textbox', 'combobox', 'searchbox', 'treeitem']);
  const buttonTypes = new Set(['submit', 'button', 'reset', 'image']);
  const silentTags = new Set(['script', 'style', 'noscript', 'template', 'head', 'svg', 'canvas', 'iframe', 'object', 'video', 'audio', 'textarea', 'select', 'datalist', 'math']);
  const isEditable = (element) => {
    const editable = attribute(element, 'contenteditable');
    return editable !== null && editable !== 'false';
  };
  const isControl = (element) => {
    const tag = tagOf(element);
    if (tag === 'input') return (attribute(element, 'type') || '').toLowerCase() !== 'hidden';
    if (tag === 'a') return hasAttribute(element, 'href') || clickRoles.has(attribute(element, 'role')) || hasAttribute(element, 'onclick');
    if (tag === 'button' || tag === 'select' || tag === 'textarea' || tag === 'summary') return true;
    if (clickRoles.has((attribute(element, 'role') || '').toLowerCase().trim())) return true;
    if (hasAttribute(element, 'onclick')) return tag !== 'body' && tag !== 'html' && tag !== 'label' && tag !== 'form';
    return isEditable(element);
  };
  const styleOf = (element) => getComputedStyle(element);
  const shows = (element) => checkVisibility(element, { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const isSized = ({ width, height, right, bottom }) =>
    width > 1 && height > 1 && right + scrollX > 0 && bottom + scrollY > 0;
  /** Cut to nothing for the eye, as text for screen readers is. */
  const isClipped = (element) => {
    const { clip, clipPath } = styleOf(element);
    return /^rect\((0|1)px,? (0|1)px,? (0|1)px,? (0|1)px\)$/.test(clip) || /^inset\((50|100)%/.test(clipPath);
  };
  const related = (hit, element) => {
    if (isWithin(hit, element) || isWithin(element, hit)) return true;
    const label = closest(hit, (at) => tagOf(at) === 'label');
    return label !== undefined && (label.control === element || isWithin(element, label));
  };
  /** The middle of the part of it that is in the viewport. */
  const middle = (element) => {
    const whole = rectOf(element);
    const rect = [...rectsOf(element)].find(({ width, height }) => width > 1 && height > 1) || whole;
    const left = Math.max(0, rect.left), right = Math.min(innerWidth, rect.right);
    const top = Math.max(0, rect.top), bottom = Math.min(innerHeight, rect.bottom);
    if (right - left < 1 || bottom - top < 1) return undefined;
    return { x: (left + right) / 2, y: (top + bottom) / 2 };
  };
  const isTransparentButReal = (element) => {
    const tag = tagOf(element);
    if (tag !== 'input' && tag !== 'textarea') return false;
    if (attribute(element, 'tabindex') === '-1' || attribute(element, 'aria-hidden') === 'true') return false;
    if (!checkVisibility(element, { visibilityProperty: true, contentVisibilityAuto: true })) return false;
    const at = middle(element);
    return at !== undefined && deepAt(at.x, at.y) === element;
  };
  const isVisible = (element) => {
    const rect = rectOf(element);
    if (!isSized(rect)) {
      // A link around a picture or a block has no size of its own.
      if (![...rectsOf(element)].some(isSized) && !childrenOf(element).slice(0, 3).some((child) => isSized(rectOf(child)))) return false;
    }
    if (!shows(element)) return isTransparentButReal(element);
    return !isClipped(element);
  };
  const boxOf = (rect) => ({
    x: Math.round(rect.left + scrollX), y: Math.round(rect.top + scrollY),
    width: Math.round(rect.width), height: Math.round(rect.height),
  });

  /** Text in the order of the page, without controls' own. Pictures speak by their alternative text. */
  const textIn = (node, most, skip, names) => {
    let text = '';
    let seen = 0;
    const walk = (at, depth) => {
      if (text.length > most || ++seen > 2000 || depth > MOST_DEPTH) return;
      const type = typeOf(at);
      if (type === 3) { text += at.data.length > 2000 ? at.data.slice(0, 2000) : at.data; return; }
      if (type !== 1 || (at !== node && skip && skip(at))) return;
      const tag = tagOf(at);
      if (names && tag === 'img') text += ' ' + (attribute(at, 'alt') || attribute(at, 'title') || '') + ' ';
      else if (names && tag === 'svg') {
        const label = attribute(at, 'aria-label') || [...queryAll(at, 'title')].map((title) => title.textContent.slice(0, 100)).join(' ');
        text += ' ' + label + ' ';
      } else if (names && at !== node && hasAttribute(at, 'aria-label')) text += ' ' + attribute(at, 'aria-label') + ' ';
      else if (silentTags.has(tag)) return;
      else if (tag === 'br') text += ' ';
      else {
        const breaks = !/^(a|b|i|em|strong|span|small|u|code|abbr|mark|sub|sup|font|slot)$/.test(tag);
        if (breaks) text += ' ';
        for (const child of below(at)) walk(child, depth + 1);
        if (breaks) text += ' ';
      }
    };
    walk(node, 0);
    return collapsed(text, most);
  };
  const labelText = (element) => textIn(element, 200, (at) => tagOf(at) !== 'label' && isControl(at) && tagOf(at) !== 'a', true);
  const named = (element, name) => {
    const ids = (attribute(element, name) || '').split(/\s+/).filter(Boolean).slice(0, 5);
    const root = rootOf(element);
    if (!(root instanceof Document || root instanceof ShadowRoot)) return '';
    return collapsed(ids.map((id) => byId(root, id)).filter(Boolean).map((other) => textIn(other, 200, undefined, true)).join(' '), 200);
  };
  const labelsOf = (element) => {
    const labels = [];
    if (element.labels) for (const label of [...element.labels].slice(0, 5)) labels.push(labelText(label));
    const by = named(element, 'aria-labelledby');
    if (by) labels.push(by);
    return [...new Set(labels.filter(Boolean))].slice(0, 5);
  };
  const nameOf = (element, labels) => {
    const by = named(element, 'aria-labelledby');
    if (by) return by;
    const aria = said(element, 'aria-label');
    if (aria) return aria;
    const tag = tagOf(element);
    if (tag === 'input' && buttonTypes.has(element.type)) return said(element, 'value') || said(element, 'alt') || said(element, 'title') || '';
    if (labels.length > 0) return labels.join(' ').slice(0, 200);
    if (tag !== 'input' && tag !== 'select' && tag !== 'textarea' && !isEditable(element)) {
      const text = textIn(element, 200, (at) => tagOf(at) === 'input', true);
      if (text) return text;
    }
    return said(element, 'title') || said(element, 'placeholder') || '';
  };

  /** What stands before or around it and belongs to no other control. */
  const nearOf = (element) => {
    const foreign = (at) => at === element || isControl(at) || tagOf(at) === 'label' && at.control && at.control !== element;
    let at = element;
    for (let level = 0; level < 4; level++) {
      const parent = above(at);
      if (!parent || tagOf(parent) === 'body') return '';
      const others = queryAll(parent, 'input:not([type=hidden]),select,textarea').length;
      let text = '';
      if (others <= 1) text = textIn(parent, ${MOST_NEAR}, foreign, false);
      else {
        let before = previousOf(at);
        for (let steps = 0; before && steps < 3 && text === ''; before = previousOf(before), steps++) {
          if (typeOf(before) === 3) text = collapsed(before.data.slice(0, 2000), ${MOST_NEAR});
          else if (typeOf(before) === 1 && queryAll(before, 'input:not([type=hidden]),select,textarea').length === 0 && !isControl(before)) text = textIn(before, ${MOST_NEAR}, foreign, false);
          else break;
        }
      }
      if (text !== '') return text;
      at = parent;
    }
    return '';
  };

  const dialogWords = /(^|[\s_-])(modal|dialog|popup|pop-up|lightbox|overlay|drawer)([\s_-]|$)/i;
  const isDialog = (element) => {
    const tag = tagOf(element);
    if (tag === 'dialog') return hasAttribute(element, 'open');
    const role = attribute(element, 'role');
    if (role === 'dialog' || role === 'alertdialog' || attribute(element, 'aria-modal') === 'true') return true;
    if (!dialogWords.test(attribute(element, 'class') || '')) return false;
    return /^(fixed|absolute)$/.test(styleOf(element).position);
  };
  const memo = (test, seen) => (element) => {
    const path = [];
    let answer = false;
    for (let at = element, steps = 0; at && steps < 200; at = above(at), steps++) {
      if (seen.has(at)) { answer = seen.get(at); break; }
      path.push(at);
      if (test(at)) { answer = true; break; }
    }
    for (const at of path) seen.set(at, answer);
    return answer;
  };

  const formOf = (element) =>
    ('form' in element && element.form instanceof HTMLFormElement && element.form) ||
    closest(element, (at) => tagOf(at) === 'form' || attribute(at, 'role') === 'form');

  const random = /\d{4,}|^[:_«]|:r\w+:|[0-9a-f]{8,}|^(ember|mui|radix|headlessui|react|ext|gen|yui|cdk|mat-input|input)[-_]?\w*\d+$/i;
  const quoted = (value) => '"' + value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\a ') + '"';
  const pathOf = (element) => {
    const steps = [];
    for (let at = element; at && steps.length < 8; at = parentOf(at)) {
      if (!isElement(at)) break;
      const tag = tagOf(at);
      const id = attribute(at, 'id');
      if (id && id.length <= 60 && !random.test(id)) { steps.unshift('#' + CSS.escape(id)); break; }
      let place = 1;
      for (let other = previousElementOf(at); other && place < 1000; other = previousElementOf(other)) if (tagOf(other) === tag) place++;
      steps.unshift(CSS.escape(tag) + ':nth-of-type(' + place + ')');
    }
    const inShadow = rootOf(element) instanceof ShadowRoot && steps.length < 8 && !steps[0].startsWith('#');
    return ((inShadow ? ':host > ' : '') + steps.join(' > ')).slice(0, 400);
  };
  const selectorsOf = (element, { labels, name }) => {
    const list = [];
    const tag = CSS.escape(tagOf(element));
    const id = attribute(element, 'id');
    if (id && id.length <= 80 && !random.test(id)) list.push('#' + CSS.escape(id));
    const type = tag === 'input' ? element.type : undefined;
    const kind = type && type !== 'text' ? '[type=' + quoted(type) + ']' : '';
    for (const by of ['name', 'data-testid', 'data-test', 'data-qa', 'data-cy', 'formcontrolname']) {
      const value = attribute(element, by);
      if (value && value.length <= 80) list.push(tag + '[' + by + '=' + quoted(value) + ']' + (by === 'name' ? kind : ''));
    }
    const hint = attribute(element, 'autocomplete');
    if (hint && hint.length <= 60 && !/^(on|off)$/i.test(hint)) list.push(tag + '[autocomplete=' + quoted(hint) + ']');
    if (type === 'password') list.push('input[type="password"]');
    const isField = tag === 'select' || tag === 'textarea' || (tag === 'input' && !buttonTypes.has(type));
    if (isField && labels[0]) list.push('label=' + labels[0]);
    if (isField && !labels[0] && name) list.push('label=' + name);
    const placeholder = said(element, 'placeholder', 100);
    if (placeholder) list.push('placeholder=' + placeholder);
    if (!isField && name) list.push('text=' + name.slice(0, 100));
    const path = pathOf(element);
    if (path && !list.includes(path)) list.push(path);
    return list.slice(0, 8);
  };

  const bool = (element, name) => {
    const value = attribute(element, name);
    return value === 'true' || value === 'mixed' ? true : value === 'false' ? false : undefined;
  };
  const numberOf = (element, name) => {
    const value = Number.parseInt(attribute(element, name) || '', 10);
    return Number.isInteger(value) && value >= 0 && value < 1e6 ? value : undefined;
  };
  const classesOf = (element) => {
    let text = attribute(element, 'class') || '';
    for (const picture of [...queryAll(element, 'i,svg,img,span[class*=icon],use')].slice(0, 4)) {
      text += ' ' + (attribute(picture, 'class') || '');
      const source = attribute(picture, 'src') || attribute(picture, 'href') || attribute(picture, 'xlink:href');
      if (source && source.length < 300 && !source.startsWith('data:')) text += ' ' + source.split('/').pop().split('?')[0];
    }
    return collapsed(text, 200);
  };
  const hasValue = (element) => {
    const tag = tagOf(element);
    if (tag === 'input') return !/^(checkbox|radio|submit|button|reset|image|file|color|range)$/.test(element.type) && element.value !== '';
    if (tag === 'textarea') return element.value !== '';
    return isEditable(element) && wordsOf(element).trim() !== '';
  };

  const describe = (element, { visible, formKeys, inDialog, active }) => {
    const tag = tagOf(element);
    const labels = labelsOf(element);
    const name = nameOf(element, labels);
    const rect = rectOf(element);
    const inViewport = rect.bottom > 0 && rect.right > 0 && rect.top < innerHeight && rect.left < innerWidth;
    const form = formOf(element);
    if (form && !formKeys.has(form)) formKeys.set(form, 'f' + formKeys.size);
    let covered;
    if (visible && inViewport) {
      const at = middle(element);
      const hit = at && deepAt(at.x, at.y);
      if (hit) covered = !related(hit, element);
    }
    const isField = tag === 'input' || tag === 'select' || tag === 'textarea' || isEditable(element);
    const href = tag === 'a' ? collapsed(String(element.href), 500) : undefined;
    return {
      tag: tag.slice(0, 40),
      type: tag === 'input' || tag === 'button' ? element.type : undefined,
      name: said(element, 'name'), id: said(element, 'id'),
      autocomplete: said(element, 'autocomplete'), role: said(element, 'role'),
      accessibleName: name || undefined, labels,
      placeholder: said(element, 'placeholder') || said(element, 'aria-placeholder'), title: said(element, 'title'),
      description: named(element, 'aria-describedby') || undefined,
      filled: hasValue(element),
      options: tag === 'select'
        ? [...element.options].slice(0, ${MOST_OPTIONS}).map((option) => ({
            label: collapsed(option.label, 100), value: option.value.slice(0, 200), selected: option.selected }))
        : undefined,
      checked: tag === 'input' && /^(checkbox|radio)$/.test(element.type) ? element.checked : bool(element, 'aria-checked'),
      inputmode: said(element, 'inputmode'), maxlength: numberOf(element, 'maxlength'), pattern: said(element, 'pattern'),
      required: hasAttribute(element, 'required') || attribute(element, 'aria-required') === 'true',
      disabled: matches(element, ':disabled') || attribute(element, 'aria-disabled') === 'true',
      readonly: hasAttribute(element, 'readonly') || attribute(element, 'aria-readonly') === 'true',
      visible, inViewport, covered, box: boxOf(rect), formKey: form ? formKeys.get(form) : undefined, href,
      near: visible && isField ? nearOf(element) : '',
      inDialog: inDialog(element), classes: classesOf(element),
      expanded: tag === 'summary' && parentOf(element) instanceof HTMLDetailsElement ? parentOf(element).open : bool(element, 'aria-expanded'),
      selected: bool(element, 'aria-selected') ?? (hasAttribute(element, 'aria-current') ? attribute(element, 'aria-current') !== 'false' : undefined),
      pressed: bool(element, 'aria-pressed'), invalid: bool(element, 'aria-invalid'),
      focused: element === active || undefined,
      selectors: visible ? selectorsOf(element, { labels, name }) : [],
    };
  };

  const rankOf = ({ element, visible }) => {
    if (!visible) return 3;
    const tag = tagOf(element);
    if (tag === 'select' || tag === 'textarea' || (tag === 'input' && !buttonTypes.has(element.type)) || isEditable(element)) return 0;
    return tag === 'input' || tag === 'button' || attribute(element, 'role') === 'button' ? 1 : 2;
  };

  const isLive = (at) => /^(alert|status|log|alertdialog)$/.test(attribute(at, 'role') || '') || /^(polite|assertive)$/.test(attribute(at, 'aria-live') || '');
  const isHeading = (at) => /^h[1-6]$/.test(tagOf(at)) || attribute(at, 'role') === 'heading';

  /** One walk over the document as it is drawn: controls, and runs of text. */
  const survey = () => {
    const late = deadline(MOST_MS);
    const controls = [];
    const runs = [];
    let nodes = 0;
    let truncated = false;
    const visit = (element, clickable, depth) => {
      if (++nodes > MOST_NODES || depth > MOST_DEPTH || late()) { truncated = true; return; }
      const tag = tagOf(element);
      const shadow = shadowOf(element);
      if (shadow) observe(shadow);
      let isOne = isControl(element);
      if (silentTags.has(tag) && !isOne) return;
      const style = styleOf(element);
      const pointer = style.cursor === 'pointer';
      if (!isOne && pointer && !clickable.pointer && !clickable.control && tag !== 'label' && tag !== 'option' && tag !== 'html' && tag !== 'body') {
        isOne = queryAll(element, 'a[href],button,input,select,textarea').length === 0;
      }
      if (isOne && controls.length < 4000) controls.push(element);
      if (silentTags.has(tag) || isEditable(element)) return;
      const inside = { pointer, control: clickable.control || isOne };
      const isLinkOrButton = isOne && tag !== 'label';
      let run = { text: '', own: false };
      const flush = () => {
        const text = collapsed(run.text, ${MOST_TEXT});
        if (text && run.own && runs.length < 3000) runs.push({ element, text });
        run = { text: '', own: false };
      };
      for (const child of below(element)) {
        const type = typeOf(child);
        if (type === 3) {
          if (run.text.length < 2000) run.text += child.data.length > 2000 ? child.data.slice(0, 2000) : child.data;
          if (!isLinkOrButton && !inside.control && /\S/.test(child.data)) run.own = true;
          continue;
        }
        if (type !== 1) continue;
        if (tagOf(child) === 'br') { run.text += ' '; continue; }
        const childTag = tagOf(child);
        const inline = !silentTags.has(childTag) && childTag !== 'label' && /^(inline|contents)$/.test(styleOf(child).display) && !isLive(child) && shows(child);
        if (inline && !isElementWithBlocks(child)) {
          if (run.text.length < 2000) run.text += textIn(child, ${MOST_TEXT}, undefined, false) === '' ? ' ' : spaced(child);
          if (!isControl(child) && !isLinkOrButton && !inside.control && /\S/.test(wordsOf(child))) run.own = true;
          collect(child, inside);
        } else {
          flush();
          visit(child, inside, depth + 1);
        }
      }
      flush();
    };
    const spaced = (child) => {
      const text = textIn(child, ${MOST_TEXT}, undefined, false);
      const { marginLeft, marginRight } = styleOf(child);
      return (Number.parseFloat(marginLeft) > 0 ? ' ' : '') + (/^\s/.test(wordsOf(child)) ? ' ' : '') + text + (/\s$/.test(wordsOf(child)) ? ' ' : '') + (Number.parseFloat(marginRight) > 0 ? ' ' : '');
    };
    const isElementWithBlocks = (element, depth = 0) => {
      let count = 0;
      if (depth > 20) return true;
      for (const child of below(element)) {
        if (typeOf(child) !== 1) continue;
        if (++count > 20) return true;
        const display = styleOf(child).display;
        if (!/^(inline|inline-block|inline-flex|none|contents)$/.test(display) || isElementWithBlocks(child, depth + 1)) return true;
      }
      return false;
    };
    /** Controls inside of a run of text. */
    const collect = (element, clickable) => {
      if (++nodes > MOST_NODES) { truncated = true; return; }
      const one = isControl(element) || (!clickable.control && !clickable.pointer && styleOf(element).cursor === 'pointer' && tagOf(element) !== 'label');
      if (one && controls.length < 4000) controls.push(element);
      if (silentTags.has(tagOf(element))) return;
      const inside = { pointer: clickable.pointer, control: clickable.control || one };
      for (const child of below(element)) if (typeOf(child) === 1) collect(child, inside);
    };
    const root = rootElement();
    if (root) visit(root, { pointer: false, control: false }, 0);
    return { controls, runs, truncated };
  };

  const look = (number) => {
    const late = deadline(MOST_MS * 2);
    const { controls, runs, truncated } = survey();
    const seen = controls.map((element) => ({ element, visible: !late() && isVisible(element) }));
    // What a person sees comes first, of that fields and then buttons; hidden ones fill up what is left.
    const chosen = seen
      .map((one, at) => ({ ...one, at, rank: rankOf(one) }))
      .sort((a, b) => a.rank - b.rank || a.at - b.at)
      .slice(0, ${MOST_ELEMENTS});
    const formKeys = new Map();
    const inDialog = memo(isDialog, new Map());
    const inLive = memo(isLive, new Map());
    const active = deepActive();
    const described = [];
    let characters = 0;
    for (const { element, visible, at } of chosen) {
      if (late() || characters > ${MOST_FRAME_CHARACTERS}) break;
      try {
        const facts = describe(element, { visible, formKeys, inDialog, active });
        characters += JSON.stringify(facts).length;
        described.push({ element, facts, at });
      } catch {}
    }
    described.sort((a, b) => a.at - b.at);
    const elements = described.map(({ facts }) => facts);
    keep(number, described.map(({ element }) => element));
    const shownRuns = runs.map((run) => {
      const rect = rectOf(run.element);
      return { ...run, rect, visible: !late() && shows(run.element) && isSized(rect) && !isClipped(run.element) };
    });
    let hiddenRoom = ${MOST_TEXTS} - Math.min(${MOST_TEXTS}, shownRuns.filter(({ visible }) => visible).length);
    let shownRoom = ${MOST_TEXTS};
    const texts = shownRuns
      .filter(({ visible }) => (visible ? shownRoom-- > 0 : hiddenRoom-- > 0))
      .map(({ element, text, rect, visible }) => {
        const form = closest(element, (at) => tagOf(at) === 'form');
        let classes = '';
        for (let at = element, level = 0; at && level < 4; at = above(at), level++) classes += ' ' + (attribute(at, 'class') || '');
        const live = inLive(element);
        const liveOne = live ? closest(element, isLive) : undefined;
        return {
          text, box: boxOf(rect), tag: tagOf(element).slice(0, 40),
          role: said(element, 'role') || (liveOne && said(liveOne, 'role')) || undefined,
          classes: collapsed(classes, 200), id: said(element, 'id'), inDialog: inDialog(element), live, visible,
          formKey: form ? formKeys.get(form) : undefined,
          heading: closest(element, isHeading) ? true : undefined,
          label: closest(element, (at) => tagOf(at) === 'label') ? true : undefined,
        };
      });
    return {
      url: location.href.slice(0, 2000), origin: String(globalThis.origin).slice(0, 300), title: titleOf(document).slice(0, 300),
      lang: (rootElement() && said(rootElement(), 'lang', 40)) || undefined, state: stateOf(document), elements, texts,
      truncated: truncated || late() || characters > ${MOST_FRAME_CHARACTERS} || controls.length > ${MOST_ELEMENTS} || runs.length > ${MOST_TEXTS},
    };
  };
`;
