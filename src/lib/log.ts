/** The logger that rooms need; pino fits, and so does a test's array. First the facts, then the event's name. */
export interface Log {
  debug(facts: object, event: string): void;
  info(facts: object, event: string): void;
  warn(facts: object, event: string): void;
  error(facts: object, event: string): void;
}

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
