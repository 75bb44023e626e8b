/** The view of a headless session: pictures of one tab, the list of tabs, and the viewer's input. */
import { belongsToText, isMac, isShortcut, readText } from './keyboard.js';

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'];
const DOUBLE_CLICK_MS = 500;
const DOUBLE_CLICK_PX = 5;
const LINE_PX = 33;
/** A finger that moves farther than this scrolls. */
const TAP_PX = 8;

export function screencast(socket, ui, signal) {
  const { $, readOnly } = ui;
  const canvas = $('screen');
  const field = $('keyboard');
  const context = canvas.getContext('2d', { alpha: false });
  let viewport = { width: 1, height: 1 };
  let tabs = [];
  let shown = null;
  let empty = false;
  let renderedTabs = '';
  let drawing = Promise.resolve();

  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  const act = readOnly ? () => {} : send;
  const listen = (target, name, listener, options) => target.addEventListener(name, listener, { signal, ...options });

  $('tabs').hidden = false;
  $('new-tab').hidden = readOnly;
  $('navigation').hidden = false;
  $('address').readOnly = readOnly;
  for (const id of ['back', 'forward', 'reload']) $(id).hidden = readOnly;

  // ---- from the session

  listen(socket, 'open', () => tellSize());
  listen(socket, 'message', ({ data }) => {
    if (typeof data === 'string') hear(JSON.parse(data));
    else drawing = drawing.then(() => draw(data));
  });

  async function draw(jpeg) {
    try {
      const picture = await createImageBitmap(new Blob([jpeg], { type: 'image/jpeg' }));
      if (canvas.width !== picture.width || canvas.height !== picture.height) {
        canvas.width = picture.width;
        canvas.height = picture.height;
        fit();
      }
      context.drawImage(picture, 0, 0);
      picture.close();
      canvas.hidden = false;
      if (!signal.aborted && !empty) ui.connected();
    } finally {
      send({ type: 'ack' });
    }
  }

  /** Applies the size to the following pictures, not to those that still wait to be drawn. */
  async function inTurn(before, size) {
    await before;
    viewport = size;
    fit();
  }

  /** As large as fits, but never larger than the page. */
  function fit() {
    const { clientWidth, clientHeight } = $('stage');
    const scale = Math.min(1, clientWidth / viewport.width, clientHeight / viewport.height);
    canvas.style.width = `${Math.round(viewport.width * scale)}px`;
    canvas.style.height = `${Math.round(viewport.height * scale)}px`;
  }

  const hearers = {
    hello() {},
    tabs(message) {
      ({ tabs, shown } = message);
      renderTabs();
      empty = shown === null;
      if (empty) ui.state('empty', 'No tab is open.', readOnly ? '' : 'Open one with + above.');
    },
    viewport({ width, height }) {
      drawing = inTurn(drawing, { width, height });
    },
    page({ loading, canGoBack, canGoForward }) {
      document.documentElement.classList.toggle('loading', loading);
      $('back').disabled = !canGoBack;
      $('forward').disabled = !canGoForward;
    },
    dialog({ kind, message, defaultText }) {
      const leaving = kind === 'beforeunload';
      $('dialog-title').textContent = leaving ? 'Leave this page?' : 'The page says';
      $('dialog-message').textContent = leaving ? 'What you have changed may not be saved.' : message;
      $('dialog-accept').textContent = leaving ? 'Leave' : 'OK';
      $('dialog-cancel').textContent = leaving ? 'Stay' : 'Cancel';
      $('dialog-cancel').hidden = kind === 'alert';
      $('dialog-text').hidden = kind !== 'prompt';
      $('dialog-text').value = defaultText;
      $('dialog').hidden = false;
      $(kind === 'prompt' ? 'dialog-text' : 'dialog-accept').focus();
    },
    dialogClosed: closeDialog,
    crashed: () => ui.notice('This tab has crashed. Reload it to go on.'),
    clipboard: ({ text }) => void ui.clipboard.receive(text),
    notice: ({ text }) => ui.notice(text),
  };

  function hear(message) {
    if (Object.hasOwn(hearers, message.type)) hearers[message.type](message);
  }

  // ---- tabs and the address

  function renderTabs() {
    const now = JSON.stringify([tabs, shown]);
    if (now === renderedTabs) return;
    renderedTabs = now;
    $('tabs').replaceChildren(...tabs.map(tabElement));
    const tab = tabs.find(({ id }) => id === shown);
    $('address').dataset.url = tab?.url ?? '';
    if (document.activeElement !== $('address')) showAddress();
    if (tab) document.title = tab.title || tab.url;
  }

  function tabElement({ id, title, url }) {
    const name = document.createElement('button');
    name.className = 'name';
    name.type = 'button';
    name.setAttribute('role', 'tab');
    name.setAttribute('aria-selected', String(id === shown));
    name.textContent = url === 'about:blank' && ['', url].includes(title) ? 'New tab' : title || url;
    name.title = `${name.textContent}\n${url}`;
    name.addEventListener('click', () => {
      closeDialog();
      send({ type: 'selectTab', id });
      field.focus({ preventScroll: true });
    });
    const element = document.createElement('div');
    element.className = 'tab';
    element.dataset.id = id;
    if (id === shown) element.dataset.shown = '';
    element.append(name);
    if (readOnly) return element;
    const close = document.createElement('button');
    close.className = 'close';
    close.type = 'button';
    close.textContent = '×';
    close.setAttribute('aria-label', `Close ${name.textContent}`);
    close.addEventListener('click', () => act({ type: 'closeTab', id }));
    element.append(close);
    return element;
  }

  function showAddress() {
    const { url } = $('address').dataset;
    $('address').value = url === 'about:blank' ? '' : url;
  }

  listen($('new-tab'), 'click', () => {
    act({ type: 'newTab' });
    $('address').focus();
  });
  listen($('navigation'), 'submit', (event) => {
    event.preventDefault();
    if (readOnly) return;
    act({ type: 'navigate', address: $('address').value });
    field.focus({ preventScroll: true });
  });
  listen($('address'), 'focus', () => $('address').select());
  listen($('address'), 'blur', showAddress);
  listen($('address'), 'keydown', (event) => {
    if (event.key !== 'Escape') return;
    showAddress();
    field.focus({ preventScroll: true });
  });
  for (const to of ['back', 'forward', 'reload']) listen($(to), 'click', () => act({ type: 'history', to }));

  // ---- dialogs

  listen($('dialog'), 'submit', (event) => {
    event.preventDefault();
    answer(true);
  });
  listen($('dialog-cancel'), 'click', () => answer(false));
  listen($('dialog'), 'keydown', (event) => event.key === 'Escape' && answer(false));

  function answer(accept) {
    act({ type: 'answer', accept, text: $('dialog-text').value });
    closeDialog();
  }

  function closeDialog() {
    if ($('dialog').hidden) return;
    $('dialog').hidden = true;
    field.focus({ preventScroll: true });
  }

  // ---- the size of the picture

  const observer = new ResizeObserver(() => {
    fit();
    tellSizeSoon();
  });
  observer.observe($('stage'));
  signal.addEventListener('abort', () => {
    observer.disconnect();
    closeDialog();
  });

  let sizeTimer;
  function tellSizeSoon() {
    clearTimeout(sizeTimer);
    sizeTimer = setTimeout(tellSize, 200);
  }

  function tellSize() {
    const { clientWidth, clientHeight } = $('stage');
    const pixels = (length) => Math.max(1, Math.min(16_384, Math.round(length * devicePixelRatio)));
    send({ type: 'size', width: pixels(clientWidth), height: pixels(clientHeight) });
  }

  if (readOnly) return;

  // ---- the mouse

  let move; // the last movement, until the next frame
  let scroll;
  let click = { time: -Infinity, button: '', x: 0, y: 0, count: 0 };
  let touch;
  let frameAsked = false;

  function at({ clientX, clientY }) {
    const box = canvas.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * viewport.width;
    const y = ((clientY - box.top) / box.height) * viewport.height;
    return { x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10 };
  }

  function soon() {
    if (frameAsked) return;
    frameAsked = true;
    requestAnimationFrame(() => {
      frameAsked = false;
      flush();
    });
  }

  /** Sends pending movements before the next event. */
  function flush() {
    if (move) act(move);
    if (scroll) act(scroll);
    move = undefined;
    scroll = undefined;
  }

  function mouse(event, pointer) {
    const button = event === 'move' ? heldButton(pointer.buttons) : (BUTTONS[pointer.button] ?? 'none');
    const clickCount = event === 'move' ? 0 : click.count;
    return {
      type: 'mouse',
      event,
      ...at(pointer),
      button,
      buttons: pointer.buttons,
      clickCount,
      modifiers: modifiersOf(pointer),
    };
  }

  function countClick(event) {
    const again =
      event.timeStamp - click.time < DOUBLE_CLICK_MS &&
      event.button === click.button &&
      Math.hypot(event.clientX - click.x, event.clientY - click.y) < DOUBLE_CLICK_PX;
    const count = again ? Math.min(3, click.count + 1) : 1;
    click = { time: event.timeStamp, button: event.button, x: event.clientX, y: event.clientY, count };
  }

  listen(canvas, 'pointerdown', (event) => {
    event.preventDefault();
    field.style.left = `${event.clientX - $('stage').getBoundingClientRect().left}px`; // an input method opens beside it
    field.style.top = `${event.clientY - $('stage').getBoundingClientRect().top}px`;
    field.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === 'touch') {
      touch = { id: event.pointerId, x: event.clientX, y: event.clientY, moved: false };
      return;
    }
    countClick(event);
    flush();
    act(mouse('down', event));
  });
  listen(canvas, 'pointermove', (event) => {
    if (touch?.id === event.pointerId) return swipe(event);
    move = mouse('move', event);
    soon();
  });
  listen(canvas, 'pointerup', (event) => {
    flush();
    if (touch?.id === event.pointerId) return tap(event);
    act(mouse('up', event));
  });
  listen(canvas, 'pointercancel', () => (touch = undefined));
  listen(canvas, 'mousedown', (event) => event.preventDefault()); // otherwise the text field would lose the focus
  listen(canvas, 'contextmenu', (event) => event.preventDefault());
  listen(
    canvas,
    'wheel',
    (event) => {
      event.preventDefault();
      const unit = [1, LINE_PX, viewport.height][event.deltaMode] ?? 1;
      addScroll(event, event.deltaX * unit, event.deltaY * unit);
    },
    { passive: false },
  );

  function addScroll(event, deltaX, deltaY) {
    scroll ??= { type: 'wheel', deltaX: 0, deltaY: 0 };
    scroll = { ...scroll, ...at(event), modifiers: modifiersOf(event) };
    scroll.deltaX += deltaX;
    scroll.deltaY += deltaY;
    soon();
  }

  function swipe(event) {
    const [deltaX, deltaY] = [touch.x - event.clientX, touch.y - event.clientY];
    if (!touch.moved && Math.hypot(deltaX, deltaY) < TAP_PX) return;
    touch = { id: touch.id, x: event.clientX, y: event.clientY, moved: true };
    addScroll(event, deltaX, deltaY);
  }

  function tap(event) {
    const { moved } = touch;
    touch = undefined;
    if (moved) return;
    countClick(event);
    act({ ...mouse('move', event), buttons: 0, button: 'none' });
    act({ ...mouse('down', event), buttons: 1, button: 'left' });
    act({ ...mouse('up', event), buttons: 0, button: 'left' });
  }

  // ---- the keyboard

  const held = new Map();

  listen(field, 'keydown', (event) => {
    if (belongsToText(event) || ['F11', 'F12'].includes(event.key)) return;
    if (isShortcut(event, 'v')) return; // the paste follows
    event.preventDefault();
    flush();
    if (isShortcut(event, 'c', 'x')) return act({ type: 'copy', cut: event.key.toLowerCase() === 'x' });
    const key = keyOf(event);
    held.set(event.code, key);
    act({ ...key, event: 'down', text: textOf(event), repeat: event.repeat });
    // A Mac does not report keys that are released while Command is down.
    if (isMac && event.metaKey && event.key !== 'Meta') keyUp(event.code, key.modifiers);
  });
  listen(field, 'keyup', (event) => {
    if (!held.has(event.code)) return;
    event.preventDefault();
    keyUp(event.code, keyOf(event).modifiers);
  });
  listen(field, 'blur', () => {
    for (const code of held.keys()) keyUp(code, 0);
  });

  function keyUp(code, modifiers) {
    const key = held.get(code);
    if (!key) return;
    held.delete(code);
    act({ ...key, event: 'up', text: '', repeat: false, modifiers });
  }

  function keyOf(event) {
    const isCommand = isMac && event.key === 'Meta';
    return {
      type: 'key',
      key: isCommand ? 'Control' : event.key,
      code: isCommand ? event.code.replace('Meta', 'Control') : event.code,
      keyCode: isCommand ? 17 : event.keyCode,
      location: event.location,
      modifiers: writes(event) ? modifiersOf(event) & 8 : modifiersOf(event),
    };
  }

  const press = (key, code, keyCode) => {
    const event = { type: 'key', key, code, keyCode, location: 0, modifiers: 0, text: '', repeat: false };
    act({ ...event, event: 'down' });
    act({ ...event, event: 'up' });
  };
  const paste = (text) => text && act({ type: 'paste', text });
  readText(
    field,
    {
      text: (text) => act({ type: 'text', text }),
      compose: (text) => act({ type: 'compose', text: text.slice(0, 1000) }),
      paste,
      erase: () => press('Backspace', 'Backspace', 8),
    },
    signal,
  );
  ui.clipboard.onPaste = paste;
  field.focus({ preventScroll: true });
}

function heldButton(buttons) {
  return ['left', 'right', 'middle', 'back', 'forward'].find((_, bit) => buttons & (1 << bit)) ?? 'none';
}

/** Modifiers as CDP counts them. The session runs on Linux, where Control takes the role of a Mac's Command. */
function modifiersOf(event) {
  const control = event.ctrlKey || (isMac && event.metaKey);
  const meta = event.metaKey && !isMac;
  return (event.altKey ? 1 : 0) | (control ? 2 : 0) | (meta ? 4 : 0) | (event.shiftKey ? 8 : 0);
}

/** Whether the key writes something: by itself, with Shift, or with AltGr, which Windows reports as Control and Alt. */
function writes(event) {
  if ([...event.key].length !== 1) return false;
  if (event.getModifierState('AltGraph')) return true;
  return !event.ctrlKey && !event.metaKey && (!event.altKey || isMac);
}

function textOf(event) {
  if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey && !event.altKey) return '\r';
  return writes(event) ? event.key : '';
}
