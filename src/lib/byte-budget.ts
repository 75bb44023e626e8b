import { withoutOwner, ownWork } from './scope.ts';

const MIB = 1024 * 1024;

export interface BudgetOptions {
  /** What all shares may hold together before growing shares have to wait. */
  total?: number;
  /** What the shares of one group may hold together. */
  groupTotal?: number;
  /** How long a share may make no progress while others wait. */
  stillMs?: number;
}

/** Shares that belong together: everything of one session. */
export interface Group {
  used: number;
  servedAt: number;
}

/** A share up to this size does not wait, as long as the total is exceeded by no more than ROOM_FOR_SMALL. */
const SMALL = 256 * 1024;
const ROOM_FOR_SMALL = 32 * MIB;
/** Ending a smaller share would not free enough. */
const WORTH_ENDING = 64 * 1024;
const LOOK_MS = 250;

/**
 * The bytes that peers make this process keep: messages that are being assembled, and responses that have not been read.
 * Each of them is a share. A share that grows while there is no room has to stop reading from its source, so the bytes
 * stay where they are (in the browser, or in the client's machine), and continues when there is room again.
 *
 * One message at a time may exceed the total, so that one can always be completed, however large it is; the next one may
 * when most of the completed bytes have been read. So there are never more bytes than the total and one message. A share
 * without progress while others wait is ended: a reader that does not read, or a sender that stopped in the middle.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #groupTotal: number;
  readonly #stillMs: number;
  readonly #shares = new Set<Share>();
  readonly #waiting = new Set<Share>();
  #used = 0;
  /** The part of it that waits to be read by a peer. */
  #unread = 0;
  #overdrawer: Share | undefined;
  #looking: NodeJS.Timeout | undefined;

  constructor({ total = 72 * MIB, groupTotal = total / 2, stillMs = 5000 }: BudgetOptions = {}) {
    this.#total = total;
    this.#groupTotal = groupTotal;
    this.#stillMs = stillMs;
  }

  get used(): number {
    return this.#used;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  group(): Group {
    return { used: 0, servedAt: 0 };
  }

  /**
   * A share of a reader makes progress when it shrinks, that of a sender when it grows. `end` is called when it made no
   * progress for too long; the share is closed by then.
   */
  share(group: Group, of: 'reader' | 'sender', end: () => void): Share {
    const share: Share = {
      owned: ownWork(),
      group,
      of,
      end,
      bytes: 0,
      movedAt: performance.now(),
      held: false,
      resume: undefined,
      set: (bytes) => this.#set(share, bytes),
      grow: (bytes, resume) => this.#grow(share, bytes, resume),
      close: () => this.#close(share),
    };
    return share;
  }

  /** Runs `work`, which takes so many bytes while it runs, when there is room for them. */
  async during<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    const share = this.share(this.group(), 'sender', () => {});
    share.held = true;
    try {
      await new Promise<void>((resolve) => void (share.grow(bytes, resolve) && resolve()));
      return await work();
    } finally {
      share.close();
    }
  }

  #set(share: Share, bytes: number): void {
    if (bytes > 0) this.#shares.add(share);
    const more = bytes - share.bytes;
    if (share.bytes === 0 || (share.of === 'reader' ? more < 0 : more > 0)) share.movedAt = performance.now();
    share.bytes = bytes;
    share.group.used += more;
    this.#used += more;
    if (share.of === 'reader') this.#unread += more;
    if (bytes === 0) {
      this.#shares.delete(share);
      if (share === this.#overdrawer) this.#overdrawer = undefined;
    }
    if (more < 0) this.#goOn();
    else if (this.#used > this.#total) this.#watch();
  }

  #grow(share: Share, bytes: number, resume: () => void): boolean {
    this.#set(share, share.bytes + bytes);
    if (share === this.#overdrawer || this.#fits(share)) return true;
    if (this.#waiting.size === 0 && this.#mayOverdraw()) {
      this.#overdrawer = share;
      return true;
    }
    share.resume = resume;
    this.#waiting.add(share);
    this.#watch();
    return false;
  }

  #close(share: Share): void {
    if (share === this.#overdrawer) this.#overdrawer = undefined;
    share.resume = undefined;
    this.#waiting.delete(share);
    if (share.bytes > 0) this.#set(share, 0);
    else this.#goOn();
  }

  #fits({ group, bytes }: Share): boolean {
    if (bytes <= SMALL && this.#used <= this.#total + ROOM_FOR_SMALL) return true;
    return this.#used <= this.#total && group.used <= this.#groupTotal;
  }

  #mayOverdraw(): boolean {
    return this.#overdrawer === undefined && this.#unread <= this.#total / 2;
  }

  #goOn(): void {
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting].sort((a, b) => a.group.servedAt - b.group.servedAt);
      const next = all.find((share) => this.#fits(share)) ?? (this.#mayOverdraw() ? all[0] : undefined);
      if (!next) return;
      if (!this.#fits(next)) this.#overdrawer = next;
      const { resume } = next;
      next.resume = undefined;
      next.movedAt = next.group.servedAt = performance.now();
      this.#waiting.delete(next);
      if (resume) next.owned(resume);
    }
  }

  #watch(): void {
    if (this.#looking) return;
    // Timers come before input in a turn of the event loop: after a pause of this process, what came meanwhile is taken first.
    this.#looking = withoutOwner(() => setTimeout(() => setImmediate(() => this.#look()), LOOK_MS));
  }

  #look(): void {
    this.#looking = undefined;
    this.#endTheStill();
    if (this.#waiting.size > 0 || this.#used > this.#total) this.#watch();
  }

  /** Ends shares without progress: the largest first, and no more of them than necessary. */
  #endTheStill(): void {
    const longAgo = performance.now() - this.#stillMs;
    const still = [...this.#shares].filter(
      ({ bytes, movedAt, held, resume }) => bytes > WORTH_ENDING && movedAt < longAgo && !held && !resume,
    );
    still.sort((a, b) => b.bytes - a.bytes);
    for (const share of still) {
      if (this.#waiting.size === 0 && this.#used <= this.#total) return;
      if (share.bytes === 0) continue; // it was ended together with another
      this.#close(share);
      share.owned(share.end);
    }
  }
}

export interface Share {
  /** Runs a callback for the owner of the share. The progress of another share calls it. */
  readonly owned: (work: () => void) => void;
  readonly group: Group;
  readonly of: 'reader' | 'sender';
  readonly end: () => void;
  bytes: number;
  movedAt: number;
  /** This process keeps it from making progress, so it is not ended for that. */
  held: boolean;
  resume: (() => void) | undefined;
  /** Sets its size, whether there is room or not. */
  set(bytes: number): void;
  /** Adds to its size. False: stop reading from the source until `resume` is called. */
  grow(bytes: number, resume: () => void): boolean;
  close(): void;
}

/** The budget of this process. */
export const memory = new ByteBudget();
