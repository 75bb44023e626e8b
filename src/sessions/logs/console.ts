import type { LineLogs } from './line-logs.ts';

const types: ReadonlySet<string> = new Set(['console_log', 'console_error']);

interface ConsoleEvent {
  ts: number;
  data?: { level?: string; text?: string; args?: string[]; source_url?: string; line?: number };
}

/** Takes the console out of a session's events, which have no secrets any more. `line` is an event as readers get it. */
export const hearConsole =
  (pageConsole: Pick<LineLogs, 'say'>) =>
  (sessionId: string, type: string, line: string): void => {
    if (types.has(type)) pageConsole.say(sessionId, consoleLine((JSON.parse(line) as { event: ConsoleEvent }).event));
  };

/** One line for a person: time, level, text, and the position of the error. */
export function consoleLine({ ts, data = {} }: ConsoleEvent): string {
  const { level = 'exception', text = '', args, source_url: url, line } = data;
  const said = (args ?? [text]).join(' ').replace(/\s+/g, (blanks) => (blanks.includes('\n') ? ' ⏎ ' : blanks));
  const where = url === undefined ? '' : ` (${url}${line === undefined ? '' : `:${line + 1}`})`;
  return `${new Date(ts / 1000).toISOString()} ${level}: ${said}${where}`;
}
