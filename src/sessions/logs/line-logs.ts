import { beginningOf } from '../../lib/text.ts';

const most = 200;
const longest = 2000;

export type LineLogs = ReturnType<typeof lineLogs>;

/** A log of each session that has no process of its own to read it from, such as its recorder's: the last lines, while the session exists. */
export function lineLogs() {
  const logs = new Map<string, { lines: string[]; listeners: Set<(line: string) => void> }>();
  const of = (sessionId: string) => {
    const there = logs.get(sessionId) ?? { lines: [], listeners: new Set() };
    logs.set(sessionId, there);
    return there;
  };

  return {
    say(sessionId: string, line: string) {
      const { lines, listeners } = of(sessionId);
      lines.push(beginningOf(line, longest));
      if (lines.length > most) lines.shift();
      for (const listener of listeners) listener(line);
    },
    lines: (sessionId: string) => [...(logs.get(sessionId)?.lines ?? [])],
    follow(sessionId: string, listener: (line: string) => void) {
      const { listeners } = of(sessionId);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    forget: (sessionId: string) => void logs.delete(sessionId),
  };
}
