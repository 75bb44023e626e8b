/**
 * Files between the viewer and the session, over the view's own connection: what the page asks for or gets dropped, and what the session
 * has downloaded. Names of files are text of the page.
 */
import { panel } from './panel.js';

/** The bounds of the service, to say so before anything is sent: src/chromium/pages/viewer-files.ts. */
const MOST_FILES = 20;
const MOST_BYTES = 100 * 1024 * 1024;
const PART = 192 * 1024;
/** The parts that are sent before the first of them is written. */
const AHEAD = 4;
const LIST_EVERY_MS = 2000;

/** `at` is where in the picture an event happened. Returns what hears the messages about files. */
export function fileBox(parts) {
  return { ...uploads(parts), ...downloads(parts) };
}

function uploads({ $, send, listen, signal, notice, focus, at }) {
  const input = $('chooser-files');
  let chooser; // the number of the page's question
  let sending; // the parts that are still to be sent

  async function* partsOf(files) {
    for (const file of files) {
      for (let from = 0; from < file.size; from += PART) {
        yield new Uint8Array(await file.slice(from, from + PART).arrayBuffer());
      }
    }
  }

  function offer(files, where) {
    const size = files.reduce((sum, file) => sum + file.size, 0);
    if (files.length === 0) return;
    if (files.length > MOST_FILES || size > MOST_BYTES) {
      notice(`At most ${MOST_FILES} files with ${MOST_BYTES / 1024 / 1024} MiB together can be sent here.`);
      return;
    }
    if (sending) return void notice('Another upload is under way. Try again when it is done.');
    sending = partsOf(files);
    notice(files.length === 1 ? `Sending ${files[0].name}…` : `Sending ${files.length} files…`);
    send({ type: 'offerFiles', ...where, files: files.map(({ name, size }) => ({ name: name.slice(-255), size })) });
    for (let part = 0; part < AHEAD; part++) more();
  }

  let reading = Promise.resolve();
  /** Sends the next part. One after the other: a generator gives them in order. */
  function more() {
    reading = reading.then(async () => {
      const parts = sending;
      const next = await parts?.next().catch(() => undefined);
      if (!next) {
        // The file has changed or is gone on this computer.
        if (parts && sending === parts) send({ type: 'noFiles', chooser: 0 });
      } else if (!next.done && sending === parts) send({ type: 'fileBytes', data: base64(next.value) });
    });
  }

  function ask(multiple) {
    input.multiple = multiple;
    input.value = '';
    $('chooser').hidden = false;
    // Without a click of the viewer a moment ago, its browser opens no dialog: then there is the button.
    if (navigator.userActivation?.isActive) input.click();
    else $('chooser-choose').focus();
  }

  function closeChooser() {
    if (chooser !== undefined) send({ type: 'noFiles', chooser });
    chooser = undefined;
    if ($('chooser').hidden) return;
    $('chooser').hidden = true;
    focus();
  }

  listen(input, 'change', () => {
    const [id, files] = [chooser, [...input.files]];
    chooser = undefined;
    closeChooser();
    if (id !== undefined) offer(files, { chooser: id, x: 0, y: 0 });
  });
  listen(input, 'cancel', closeChooser);
  listen($('chooser-choose'), 'click', () => input.click());
  listen($('chooser-cancel'), 'click', closeChooser);
  listen($('chooser'), 'keydown', (event) => event.key === 'Escape' && closeChooser());
  listen($('stage'), 'dragover', (event) => {
    if (!event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = 'copy';
  });
  listen($('stage'), 'drop', (event) => {
    if (!event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    offer([...event.dataTransfer.files], { chooser: 0, ...at(event) });
  });
  signal.addEventListener('abort', () => ($('chooser').hidden = true));

  return {
    chooser({ id, multiple }) {
      chooser = id;
      ask(multiple);
    },
    more,
    filesDone({ problem }) {
      sending = undefined;
      notice(problem || 'Sent.');
    },
  };
}

function downloads({ $, send, listen, signal, notice, focus }) {
  let listed = '';
  let saving;
  let timer;
  const box = panel({ $, name: 'files', listen, opened });
  box.button.hidden = false;

  function opened(yes) {
    clearInterval(timer);
    if (!yes) return void focus();
    const list = () => send({ type: 'downloads' });
    timer = setInterval(list, LIST_EVERY_MS);
    list();
  }
  signal.addEventListener('abort', () => box.open(false));

  function row({ name, size }) {
    const [item, label, save] = ['li', 'span', 'button'].map((tag) => document.createElement(tag));
    label.textContent = `${name} (${sizeOf(size)})`;
    label.title = name;
    save.type = 'button';
    save.textContent = 'Save';
    save.setAttribute('aria-label', `Save ${name}`);
    save.addEventListener('click', () => send({ type: 'save', name }));
    item.append(label, save);
    return item;
  }

  return {
    downloads({ files, problem }) {
      $('files-help').textContent = problem || 'The session has downloaded nothing.';
      $('files-help').hidden = files.length > 0;
      if (listed === JSON.stringify(files)) return;
      listed = JSON.stringify(files);
      $('files-list').replaceChildren(...files.map(row));
    },
    saving({ name }) {
      saving = { name, parts: [] };
      notice(`Saving ${name}…`);
    },
    saveBytes: ({ data }) => saving?.parts.push(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))),
    saved({ problem }) {
      const done = saving;
      saving = undefined;
      if (problem || !done) return void notice(problem);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob(done.parts));
      link.download = done.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    },
  };
}

function base64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

function sizeOf(bytes) {
  const unit = [1, 1024, 1024 ** 2, 1024 ** 3].findLast((each) => bytes >= each) ?? 1;
  const name = { 1: 'bytes', [1024]: 'KiB', [1024 ** 2]: 'MiB', [1024 ** 3]: 'GiB' }[unit];
  return `${Math.round((bytes / unit) * 10) / 10} ${name}`;
}
