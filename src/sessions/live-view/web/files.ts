/**
 * Files between the viewer and the session, over the view's own connection: what the page asks for or gets dropped, and what the session
 * has downloaded. Names of files are text of the page.
 */
import { MOST_FILES, MOST_UPLOADED } from '../../../chromium/pages/upload-bounds.ts';
import type { FileMessage, ViewerMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { panel } from './panel.ts';
import type { Parts } from './parts.ts';

const PART = 192 * 1024;
/** The parts that are sent before the first of them is written. */
const AHEAD = 4;
const LIST_EVERY_MS = 2000;

interface FileParts extends Parts {
  /** Where in the picture an event happened. */
  at(event: MouseEvent): { x: number; y: number };
}

type MessageOf<T extends FileMessage['type']> = Extract<FileMessage, { type: T }>;

export function fileBox(parts: FileParts) {
  const uploading = uploads(parts);
  const downloading = downloads(parts);
  return {
    hear(message: FileMessage): void {
      switch (message.type) {
        case 'chooser':
          return uploading.choose(message);
        case 'more':
          return uploading.more();
        case 'filesDone':
          return uploading.done(message);
        case 'downloads':
          return downloading.list(message);
        case 'saving':
          return downloading.begin(message);
        case 'saveBytes':
          return downloading.add(message);
        case 'saved':
          return downloading.end(message);
      }
    },
  };
}

function uploads({ send, listen, signal, notice, focus, at }: FileParts) {
  const input = $('chooser-files');
  let chooser: number | undefined; // the number of the page's question
  let sending: ReturnType<typeof partsOf> | undefined; // the parts that are still to be sent

  async function* partsOf(files: readonly File[]) {
    for (const file of files) {
      for (let from = 0; from < file.size; from += PART) {
        yield new Uint8Array(await file.slice(from, from + PART).arrayBuffer());
      }
    }
  }

  function offer(files: readonly File[], where: Omit<ViewerMessageOf<'offerFiles'>, 'type' | 'files'>): void {
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const [first] = files;
    if (!first) return;
    if (files.length > MOST_FILES || size > MOST_UPLOADED) {
      notice(`At most ${MOST_FILES} files with ${MOST_UPLOADED / 1024 / 1024} MiB together can be sent here.`);
      return;
    }
    if (sending) return notice('Another upload is running. Try again when it is done.');
    sending = partsOf(files);
    notice(files.length === 1 ? `Sending ${first.name}…` : `Sending ${files.length} files…`);
    send({ type: 'offerFiles', ...where, files: files.map(({ name, size }) => ({ name: name.slice(-255), size })) });
    for (let part = 0; part < AHEAD; part++) more();
  }

  let reading = Promise.resolve();
  /** Sends the next part. One after the other: a generator gives them in order. */
  function more(): void {
    reading = reading.then(async () => {
      const parts = sending;
      const next = await parts?.next().catch(() => undefined);
      if (!next) {
        // The file was changed or deleted on this computer.
        if (parts && sending === parts) send({ type: 'noFiles', chooser: 0 });
      } else if (!next.done && sending === parts) send({ type: 'fileBytes', data: base64(next.value) });
    });
  }

  function ask(multiple: boolean): void {
    input.multiple = multiple;
    input.value = '';
    $('chooser').hidden = false;
    // Without a click of the viewer a moment ago, its browser opens no dialog: then there is the button.
    if (navigator.userActivation?.isActive) input.click();
    else $('chooser-choose').focus();
  }

  function closeChooser(): void {
    if (chooser !== undefined) send({ type: 'noFiles', chooser });
    chooser = undefined;
    if ($('chooser').hidden) return;
    $('chooser').hidden = true;
    focus();
  }

  listen(input, 'change', () => {
    const [id, files] = [chooser, [...(input.files ?? [])]];
    chooser = undefined;
    closeChooser();
    if (id !== undefined) offer(files, { chooser: id, x: 0, y: 0 });
  });
  listen(input, 'cancel', closeChooser);
  listen($('chooser-choose'), 'click', () => input.click());
  listen($('chooser-cancel'), 'click', closeChooser);
  listen($('chooser'), 'keydown', (event) => event.key === 'Escape' && closeChooser());
  listen($('stage'), 'dragover', (event) => {
    const { dataTransfer } = event;
    if (!dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    dataTransfer.dropEffect = 'copy';
  });
  listen($('stage'), 'drop', (event) => {
    const { dataTransfer } = event;
    if (!dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    offer([...dataTransfer.files], { chooser: 0, ...at(event) });
  });
  signal.addEventListener('abort', () => ($('chooser').hidden = true));

  return {
    choose({ id, multiple }: MessageOf<'chooser'>): void {
      chooser = id;
      ask(multiple);
    },
    more,
    done({ problem }: MessageOf<'filesDone'>): void {
      sending = undefined;
      notice(problem || 'Sent.');
    },
  };
}

function downloads({ send, listen, signal, notice, focus }: FileParts) {
  let listed = '';
  let saving: { name: string; parts: Uint8Array<ArrayBuffer>[] } | undefined;
  let timer: number | undefined;
  const box = panel({ name: 'files', listen, opened });
  box.button.hidden = false;

  function opened(yes: boolean): void {
    clearInterval(timer);
    if (!yes) return focus();
    const list = () => send({ type: 'downloads' });
    timer = setInterval(list, LIST_EVERY_MS);
    list();
  }
  signal.addEventListener('abort', () => box.open(false));

  function row({ name, size }: { name: string; size: number }): HTMLElement {
    const item = document.createElement('li');
    const label = document.createElement('span');
    const save = document.createElement('button');
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
    list({ files, problem }: MessageOf<'downloads'>): void {
      $('files-help').textContent = problem || 'The session has downloaded nothing.';
      $('files-help').hidden = files.length > 0;
      if (listed === JSON.stringify(files)) return;
      listed = JSON.stringify(files);
      $('files-list').replaceChildren(...files.map(row));
    },
    begin({ name }: MessageOf<'saving'>): void {
      saving = { name, parts: [] };
      notice(`Saving ${name}…`);
    },
    add({ data }: MessageOf<'saveBytes'>): void {
      saving?.parts.push(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
    },
    end({ problem }: MessageOf<'saved'>): void {
      const done = saving;
      saving = undefined;
      if (problem || !done) return notice(problem);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob(done.parts));
      link.download = done.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    },
  };
}

function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

const units = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
] as const;

function sizeOf(bytes: number): string {
  const [unit, name] = units.find(([unit]) => bytes >= unit) ?? [1, 'bytes'];
  return `${Math.round((bytes / unit) * 10) / 10} ${name}`;
}
