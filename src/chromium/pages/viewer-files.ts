import { mergedRuns } from '../../lib/merged-runs.ts';
import { MOST_FILES, MOST_UPLOADED } from './upload-bounds.ts';
import type { FileMessage, FilesMessage, ViewerMessageOf } from './viewer-protocol.ts';

/** The session's files, as far as a viewer gets to them. */
export interface SessionFiles {
  /** Takes files into the session, all or none. */
  upload(names: readonly string[], signal: AbortSignal): Promise<IncomingFiles>;
  /** Complete downloads, the newest first. */
  downloads(): Promise<readonly { name: string; size: number }[]>;
  read(name: string, signal: AbortSignal): Promise<{ size: number; content: AsyncIterable<Buffer>; close(): void }>;
  /** Why it failed, for the viewer. */
  explain(error: unknown): string;
}

interface IncomingFiles {
  /** The next file begins. */
  next(): Promise<void>;
  bytes(chunk: Buffer): Promise<void>;
  /** Resolves with their paths in the session when they are in place. */
  end(): Promise<readonly string[]>;
  reset(): void;
}

/** The target of files in the page: the control that asked for them, or the place where they were dropped. */
export type Taker = (paths: readonly string[]) => Promise<unknown>;

const MIB = 1024 * 1024;
const MOST_SAVED = 500 * MIB;
const MOST_LISTED = 200;
/** The parts of an upload that may be unacknowledged, and the size of the parts of a download. The live view sends half as many. */
const MOST_PARTS = 8;
const PART = 192 * 1024;
/** While more than this is unsent, a download waits. */
const FULL = MIB;
const WAIT_MS = 20;

/** Files from a viewer into the session and back, over the viewer's own websocket: one upload and one download at a time. */
export function viewerFiles({
  files,
  tell,
  unsent,
  dropAt,
}: {
  files: SessionFiles;
  tell: (message: FileMessage) => void;
  unsent: () => number;
  /** Takes files that are dropped at a place of the picture. */
  dropAt: (place: { x: number; y: number }) => Taker | undefined;
}) {
  const over = new AbortController();
  let lastChooser = 0;
  /** The control that waits for files. */
  let chooser: { id: number; take: Taker } | undefined;
  let uploading: { take(chunk: Buffer): void; stop(): void } | undefined;
  let saving = false;

  function offer(message: ViewerMessageOf<'offerFiles'>): void {
    const take = message.chooser === 0 ? dropAt(message) : chooserOf(message.chooser)?.take;
    const size = message.files.reduce((sum, file) => sum + file.size, 0);
    const refuse = (problem: string) => tell({ type: 'filesDone', problem });
    if (!take) return refuse('The page does not wait for files any more.');
    if (uploading) return refuse('Another upload is running. Try again when it is done.');
    if (message.files.length > MOST_FILES || size > MOST_UPLOADED)
      return refuse(
        `At most ${MOST_FILES} files with ${MOST_UPLOADED / MIB} MiB together can be sent here. The API's fs paths take more.`,
      );
    if (message.files.length === 0) return refuse('');
    chooser = undefined;
    uploading = upload(message.files, take);
  }

  const chooserOf = (id: number) => (chooser?.id === id ? chooser : undefined);

  function upload(given: readonly { name: string; size: number }[], take: Taker) {
    const stopped = new AbortController();
    const signal = AbortSignal.any([over.signal, stopped.signal]);
    const left = given.map(({ size }) => size);
    let parts = 0;
    let incoming: IncomingFiles | undefined;

    async function begin(): Promise<void> {
      incoming = await files.upload(
        given.map(({ name }) => name),
        signal,
      );
      if (signal.aborted) return incoming.reset();
      await incoming.next();
      await goOn();
    }

    /** Begins the next file where one is whole, and ends when all are. */
    async function goOn(): Promise<void> {
      while (left[0] === 0) {
        left.shift();
        if (left.length > 0) await incoming!.next();
      }
      if (left.length > 0) return;
      await take(await incoming!.end());
      finish('');
    }

    async function write(chunk: Buffer): Promise<void> {
      if (signal.aborted) return;
      if (chunk.length > (left[0] ?? 0)) throw new Error('More bytes than were announced.');
      await incoming!.bytes(chunk);
      left[0]! -= chunk.length;
      parts -= 1;
      tell({ type: 'more' });
      await goOn();
    }

    function finish(problem: string): void {
      if (uploading !== self) return;
      uploading = undefined;
      stopped.abort();
      incoming?.reset();
      if (!over.signal.aborted) tell({ type: 'filesDone', problem });
    }

    const failed = (error: unknown) => finish(files.explain(error));
    let work = begin().catch(failed);
    const self = {
      take(chunk: Buffer): void {
        parts += 1;
        if (parts > MOST_PARTS) return failed(new Error('More parts than were asked for.'));
        work = work.then(() => write(chunk)).catch(failed);
      },
      stop: () => finish(''),
    };
    return self;
  }

  const list = mergedRuns(async () => {
    if (over.signal.aborted) return;
    const found = await files.downloads().then(
      (all) => ({ files: all.slice(0, MOST_LISTED), problem: '' }),
      (error: unknown) => ({ files: [], problem: files.explain(error) }),
    );
    if (!over.signal.aborted) tell({ type: 'downloads', ...found });
  });

  return {
    /** The page asks for files. */
    choose(take: Taker, multiple: boolean): void {
      lastChooser += 1;
      chooser = { id: lastChooser, take };
      tell({ type: 'chooser', id: lastChooser, multiple });
    },

    take(message: FilesMessage): void {
      switch (message.type) {
        case 'offerFiles':
          return offer(message);
        case 'fileBytes':
          return uploading?.take(Buffer.from(message.data, 'base64'));
        case 'noFiles':
          if (chooserOf(message.chooser)) chooser = undefined;
          return uploading?.stop();
        case 'downloads':
          return void list();
        case 'save':
          if (saving)
            return tell({ type: 'saved', problem: 'Another file is being saved. Try again when it is done.' });
          saving = true;
          void send({ files, tell, unsent }, message.name, over.signal)
            .catch((error: unknown) => over.signal.aborted || tell({ type: 'saved', problem: files.explain(error) }))
            .finally(() => (saving = false));
      }
    },

    /** The viewer has left: nothing of an upload stays that was not whole. */
    close: () => over.abort(),
  };
}

const tooLarge = (name: string) =>
  `${name} is larger than ${MOST_SAVED / MIB} MiB. GET /browsers/{id}/fs/read_file sends files of any size.`;

/** Sends a download to the viewer, no faster than the viewer takes it. */
async function send(
  { files, tell, unsent }: { files: SessionFiles; tell: (message: FileMessage) => void; unsent: () => number },
  name: string,
  over: AbortSignal,
): Promise<void> {
  const { size, content, close } = await files.read(name, over);
  try {
    if (size > MOST_SAVED) return tell({ type: 'saved', problem: tooLarge(name) });
    tell({ type: 'saving', name, size });
    let sent = 0;
    for await (const bytes of content) {
      sent += bytes.length;
      if (sent > MOST_SAVED) return tell({ type: 'saved', problem: tooLarge(name) });
      for (let at = 0; at < bytes.length; at += PART) {
        while (unsent() > FULL && !over.aborted) await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
        if (over.aborted) return;
        tell({ type: 'saveBytes', data: bytes.subarray(at, at + PART).toString('base64') });
      }
    }
    tell({ type: 'saved', problem: '' });
  } finally {
    close();
  }
}
