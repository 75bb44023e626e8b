import { tailFile, type Unreadable } from '../../chromium/sandbox/tail.ts';
import { errors } from '../../errors.ts';
import { turns } from '../../lib/turns.ts';
import type { Hold } from '../holds.ts';
import { lineReader } from './lines.ts';
import { logNames, type KeptLogs, type LogName } from './kept.ts';
import type { LineLogs } from './line-logs.ts';
import type { LogQuery } from './schema.ts';

/** Receives the lines. Resolves when there is room for more; false: the reader has disconnected. */
interface LineSink {
  send(line: string): Promise<boolean>;
  readonly closed: AbortSignal;
}

/** Sends the lines of a log to a sink until they end or the reader disconnects. It exists before the first line is sent. */
type LogSource = (sink: LineSink) => Promise<void>;

/** Lines kept while the reader is behind, and their characters. Further ones are counted, not kept. */
const mostWaiting = 1000;
const mostLength = 2 ** 20;
/** The bytes of a file that are cut into lines at once. Each may be a line. */
const bytesAtOnce = 4096;

const refusals: Record<Unreadable, (path: string) => string> = {
  missing: (path) => `The session has no file ${path}.`,
  not_a_file: (path) => `${path} is not a file.`,
  not_readable: (path) => `${path} may not be read by the session's user.`,
};

/** Opens the requested log; a missing one is refused before anything is streamed. */
export async function openLog(
  held: Hold,
  sessionId: string,
  query: LogQuery,
  { recorder, pageConsole }: Record<'recorder' | 'pageConsole', LineLogs>,
): Promise<LogSource> {
  const { follow = true } = query;
  const { browser } = held.engine;
  const asked = askedLog(query);
  if ('path' in asked) return fileLog(browser.init, asked.path, follow);
  const lines = (log: LineLogs) =>
    lineLog(log.lines(sessionId), follow && ((listener) => log.follow(sessionId, listener)), browser.exited);
  switch (asked.process) {
    case 'chromium':
      return lineLog(browser.logTail(), follow && browser.logTail.follow, browser.exited);
    case 'recorder':
      return lines(recorder);
    case 'console':
      return lines(pageConsole);
    case 'xvnc': {
      const { displayLog } = browser;
      if (!displayLog) {
        throw errors.not_found({ detail: 'A headless session has no display, and so no process xvnc.' });
      }
      return lineLog(displayLog(), follow && displayLog.follow, browser.exited);
    }
    case 'processes':
      throw errors.not_found({
        detail:
          'The session runs, and each of its processes is read by itself: GET /browsers/{id}/process/{id}/stdout/stream.',
      });
  }
}

/** Opens the last lines that were kept of an ended session. They have the time at which they were kept. */
export async function openKeptLog(sessionId: string, query: LogQuery, kept: Pick<KeptLogs, 'read'>) {
  const asked = askedLog(query);
  if ('path' in asked)
    throw errors.not_found({
      detail: `Session '${sessionId}' has ended, and its files are gone. source=supervisor has its last lines.`,
    });
  const found = await kept.read(sessionId);
  const lines = found?.lines[asked.process];
  if (!found || !lines)
    throw errors.not_found({ detail: `Session '${sessionId}' has ended, and no line of '${asked.process}' is kept.` });
  return { at: found.at, lines };
}

/** The file or the process that is asked for. */
function askedLog({ source, path, supervisor_process: process }: LogQuery): { path: string } | { process: LogName } {
  const [idle, value] = source === 'path' ? ['supervisor_process', process] : ['path', path];
  if (value)
    throw errors.invalid_input({
      detail: `${idle} does not go with source=${source}; leave it out, or change source.`,
    });
  if (source === 'path') {
    if (!path) throw errors.invalid_input({ detail: 'path is missing; source=path needs one.' });
    return { path };
  }
  if (!process) {
    throw errors.invalid_input({ detail: 'supervisor_process is missing; source=supervisor needs one.' });
  }
  const name = logNames.find((known) => known === process);
  if (!name)
    throw errors.not_found({
      detail: `A session has no process '${process}'; it has chromium, xvnc (headful), recorder and console.`,
    });
  return { process: name };
}

async function fileLog(init: number | undefined, path: string, follow: boolean): Promise<LogSource> {
  if (init === undefined) {
    throw errors.engine_unavailable({
      detail: 'This machine runs sessions without a sandbox; their files are not read.',
    });
  }
  const tail = await tailFile(init, path, follow);
  if (typeof tail === 'string') throw errors.not_found({ detail: refusals[tail](path) });
  return async (sink) => {
    sink.closed.addEventListener('abort', () => tail.close(), { once: true });
    if (sink.closed.aborted) tail.close();
    const lines: string[] = [];
    const reader = lineReader((line) => lines.push(line));
    const turn = turns();
    try {
      for await (const data of tail.output as AsyncIterable<Buffer>) {
        for (let at = 0; at < data.length; at += bytesAtOnce) {
          reader.read(data.subarray(at, at + bytesAtOnce));
          for (const line of lines.splice(0)) {
            if (!(await sink.send(line))) return;
            await turn();
          }
        }
      }
      reader.end();
      for (const line of lines) await sink.send(line);
    } catch {
      // The reader disconnected, or the session ended: either way nothing is left to send to.
    } finally {
      tail.close();
    }
  };
}

/** The lines that wait, then new ones until `over`. */
function lineLog(
  waiting: string[],
  follow: false | ((listener: (line: string) => void) => () => void),
  over: Promise<unknown>,
): LogSource {
  return async (sink) => {
    let length = waiting.reduce((sum, line) => sum + line.length, 0);
    let dropped = 0;
    let wake: (() => void) | undefined;
    let ended = !follow;
    const stop =
      follow &&
      follow((line) => {
        if (waiting.length < mostWaiting && length < mostLength) {
          waiting.push(line);
          length += line.length;
        } else dropped += 1;
        wake?.();
      });
    const finish = () => ((ended = true), wake?.());
    void over.then(finish);
    sink.closed.addEventListener('abort', finish, { once: true });
    try {
      for (;;) {
        for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) {
          length -= line.length;
          if (!(await sink.send(line))) return;
        }
        if (dropped > 0) {
          const note = `… ${dropped} more lines came while they were not read.`;
          dropped = 0;
          if (!(await sink.send(note))) return;
          continue;
        }
        if (ended || sink.closed.aborted) return;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      if (stop) stop();
      waiting.length = 0; // `over` keeps this function until the browser exits
    }
  };
}
