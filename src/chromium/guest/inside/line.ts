import type { FileEvent } from './directory-watch.ts';

/** The most events kept for a reader, or until there is one. */
const MOST_EVENTS = 10_000;

/** Events in order, up to a limit; further ones are counted, and the count is reported in their place. */
export class Line {
  ended = false;
  readonly #root: string;
  #events: FileEvent[] = [];
  #dropped = 0;
  #wake: (() => void) | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  add(event: FileEvent) {
    const last = this.#events.at(-1);
    // Many writes to one file are merged until a reader has taken the first.
    if (event.type === 'WRITE' && last?.type === 'WRITE' && last.path === event.path) return;
    this.#events.push(event);
    if (this.#events.length > MOST_EVENTS) {
      this.#events.shift();
      this.#dropped++;
    }
    this.#wake?.();
  }

  take(): FileEvent | undefined {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped > 0 ? { type: 'OVERFLOW', path: this.#root, dropped } : this.#events.shift();
  }

  end() {
    this.ended = true;
    this.#wake?.();
  }

  more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        resolve();
      };
      signal.addEventListener('abort', done, { once: true });
      this.#wake = done;
    });
  }
}
