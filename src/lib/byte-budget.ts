import { withoutOwner, ownWork } from './scope.ts';

const MIB = 1024 * 1024;

interface BudgetOptions {
  /** The bytes that all shares may hold together before growing shares have to wait. */
  total?: number;
  /** The bytes that the shares of one session may hold together. */
  groupTotal?: number;
  /** How long a share may make no progress while others wait. */
  stillMs?: number;
  /** How long a share may exceed the total while shares of other projects wait, and how long readers of several projects may. */
  overdraftMs?: number;
}

/** The shares of one session, or of one project with all its sessions. */
export interface Group {
  /** The project of a session. */
  parent: Group | undefined;
  used: number;
  servedAt: number;
  /** Shares that wait for room, in the order in which they began to wait. */
  readonly waiting: { readonly small: Set<Share>; readonly large: Set<Share> };
  /** The bytes of small shares. Counted for the project. */
  small: number;
  /** The bytes that are whole: they wait for this process, or for a reader. Counted for the project. */
  whole: number;
}

/** Shares up to this size do not wait for large ones. They have ROOM_FOR_SMALL beside the total. */
const SMALL = 256 * 1024;
const ROOM_FOR_SMALL = 32 * MIB;
/**
 * A project may hold this many times as much as is free. One project alone gets three quarters of the total, two get three sevenths each:
 * there is always room for the next one. A fixed share would be too small with many projects, and no limit with few.
 */
const PART_OF_FREE = 3;
/** Ending a smaller share would not free enough. A sender that sends less within `stillMs` makes no progress. */
const WORTH_ENDING = 64 * 1024;
const LOOK_MS = 250;
/** How long readers may leave more unread than there is room for: large answers of many clients at once are read in less. */
const BURST_MS = 2 * LOOK_MS;

/**
 * The bytes that peers make this process keep: messages that are being assembled, and responses that have not been read.
 * Each of them is a share. A share that grows while there is no room has to stop reading from its source, so the bytes
 * stay where they are (in the browser, or in the client's machine), and continues when there is room again.
 *
 * One message at a time may exceed the limits, so that every message can be completed, however large it is. If the whole
 * messages of a project use its part of the total, it may not start another one, and the project with the most does not block others. So
 * one project cannot stop the others. A share without progress is ended while others wait: a reader that does not
 * read, or a sender that stopped in the middle. Readers never wait for room: those that read less than they get are ended
 * when too much is unread.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #groupTotal: number;
  readonly #stillMs: number;
  readonly #overdraftMs: number;
  readonly #shares = new Set<Share>();
  /** Groups with waiting shares. */
  readonly #queues = new Set<Group>();
  /** Projects that hold bytes. */
  readonly #projects = new Set<Group>();
  readonly #known = new Map<string, WeakRef<Group>>();
  readonly #forgotten = new FinalizationRegistry<string>((key) => {
    if (this.#known.get(key)?.deref() === undefined) this.#known.delete(key);
  });
  #used = 0;
  #small = 0;
  #overdraft: { share: Share; since: number } | undefined;
  /** Since when more is unread than there is room for, beside the largest share. */
  #crowdedSince: number | undefined;
  #looking: NodeJS.Timeout | undefined;

  constructor({ total = 72 * MIB, groupTotal = total / 2, stillMs = 5000, overdraftMs = 30_000 }: BudgetOptions = {}) {
    this.#total = total;
    this.#groupTotal = groupTotal;
    this.#stillMs = stillMs;
    this.#overdraftMs = overdraftMs;
  }

  get used(): number {
    return this.#used;
  }

  get waiting(): number {
    let count = 0;
    for (const { waiting } of this.#queues) count += waiting.small.size + waiting.large.size;
    return count;
  }

  group(): Group {
    return {
      parent: undefined,
      used: 0,
      servedAt: 0,
      waiting: { small: new Set(), large: new Set() },
      small: 0,
      whole: 0,
    };
  }

  /** The group of a project. It is the same object for as long as anything refers to it. */
  project(id: string): Group {
    const known = this.#known.get(id)?.deref();
    if (known) return known;
    const group = this.group();
    this.#known.set(id, new WeakRef(group));
    this.#forgotten.register(group, id);
    return group;
  }

  /** Counts a session's bytes for its project. */
  join(group: Group, project: Group): void {
    if (group.parent) return;
    group.parent = project;
    project.used += group.used;
    project.small += group.small;
    project.whole += group.whole;
    this.#projects.delete(group);
    if (project.used > 0) this.#projects.add(project);
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
      moved: 0,
      held: false,
      resume: undefined,
      wanted: 0,
      set: (bytes) => this.#set(share, bytes),
      grow: (bytes, resume) => this.#grow(share, bytes, resume),
      hold: (held) => this.#hold(share, held),
      close: () => this.#close(share),
    };
    return share;
  }

  /** Runs `work`, which takes so many bytes while it runs, when there is room for them. */
  async during<T>(group: Group, bytes: number, work: () => Promise<T>): Promise<T> {
    const share = this.share(group, 'sender', () => {});
    try {
      await new Promise<void>((resolve) => void (share.grow(bytes, resolve) && resolve()));
      share.hold(true);
      return await work();
    } finally {
      share.close();
    }
  }

  #set(share: Share, bytes: number): void {
    if (bytes > 0) this.#shares.add(share);
    const more = bytes - share.bytes;
    if (share.bytes === 0 || (share.of === 'reader' && more < 0)) {
      share.movedAt = performance.now();
      share.moved = 0;
    } else if (share.of === 'sender' && more > 0) progress(share, more);
    const small = smallPart(bytes) - smallPart(share.bytes);
    const project = projectOf(share);
    share.bytes = bytes;
    share.group.used += more;
    if (project !== share.group) project.used += more;
    project.small += small;
    if (isWhole(share)) project.whole += more;
    this.#used += more;
    this.#small += small;
    if (project.used > 0) this.#projects.add(project);
    else this.#projects.delete(project);
    if (bytes === 0) {
      this.#shares.delete(share);
      if (share === this.#overdraft?.share) this.#overdraft = undefined;
    }
    if (more < 0) this.#goOn();
    else if (this.#used > this.#total) this.#watch();
  }

  #grow(share: Share, bytes: number, resume: () => void): boolean {
    if (this.#mayGrow(share, bytes)) {
      this.#set(share, share.bytes + bytes);
      return true;
    }
    share.resume = resume;
    share.wanted = bytes;
    const { group } = share;
    group.waiting[share.bytes + bytes <= SMALL ? 'small' : 'large'].add(share);
    this.#queues.add(group);
    this.#watch();
    return false;
  }

  #mayGrow(share: Share, bytes: number): boolean {
    if (share === this.#overdraft?.share || this.#fits(share, bytes)) return true;
    // No waiting share may overdraw now: it would have started when the last overdraft ended.
    if (!this.#mayOverdraw(share)) return false;
    this.#overdraft = { share, since: performance.now() };
    return true;
  }

  /** A share that is held is whole, so it exceeds the limits no longer than necessary: the next one may. */
  #hold(share: Share, held: boolean): void {
    if (share.held === held) return;
    share.held = held;
    if (share.of === 'sender') projectOf(share).whole += held ? share.bytes : -share.bytes;
    if (held && share === this.#overdraft?.share) this.#overdraft = undefined;
    this.#goOn();
  }

  #close(share: Share): void {
    if (share === this.#overdraft?.share) this.#overdraft = undefined;
    share.resume = undefined;
    this.#waitNoLonger(share);
    if (share.bytes > 0) this.#set(share, 0);
    else this.#goOn();
  }

  #waitNoLonger(share: Share): void {
    const { small, large } = share.group.waiting;
    small.delete(share);
    large.delete(share);
    if (small.size + large.size === 0) this.#queues.delete(share.group);
  }

  #fits(share: Share, more: number): boolean {
    const { group, bytes } = share;
    const project = projectOf(share);
    const freeForSmall = ROOM_FOR_SMALL - this.#small - more;
    if (bytes + more <= SMALL && project.small + more <= PART_OF_FREE * freeForSmall) return true;
    if (group.parent && group.used + more > this.#groupTotal) return false;
    // The message that exceeds the limits is not counted against the others.
    const over = this.#overdraft?.share;
    const free = this.#total - (this.#used - (over?.bytes ?? 0)) - more;
    const used = project.used - (over && projectOf(over) === project ? over.bytes : 0);
    return used + more <= PART_OF_FREE * free;
  }

  #mayOverdraw(share: Share): boolean {
    if (this.#overdraft) return false;
    let [all, most, projects] = [0, 0, 0];
    for (const { whole } of this.#projects) {
      all += whole;
      most = Math.max(most, whole);
      if (whole > 0) projects += 1;
    }
    return projectOf(share).whole <= this.#total / (projects + 1) && all - most <= this.#total;
  }

  #goOn(): void {
    for (let next; (next = this.#next());) {
      const { resume, wanted } = next;
      this.#mayGrow(next, wanted);
      next.resume = undefined;
      next.movedAt = next.group.servedAt = projectOf(next).servedAt = performance.now();
      next.moved = 0;
      this.#waitNoLonger(next);
      this.#set(next, next.bytes + wanted);
      if (resume) next.owned(resume);
    }
  }

  /** Projects take turns, and so do the sessions of a project. */
  #next(): Share | undefined {
    if (this.#queues.size === 0) return undefined;
    let overdrawer: Share | undefined;
    const turns = [...this.#queues].sort(
      (a, b) => (a.parent ?? a).servedAt - (b.parent ?? b).servedAt || a.servedAt - b.servedAt,
    );
    for (const { waiting } of turns) {
      for (const [first] of [waiting.small, waiting.large]) {
        if (!first) continue;
        if (this.#fits(first, first.wanted)) return first;
        if (!overdrawer && this.#mayOverdraw(first)) overdrawer = first;
      }
    }
    return overdrawer;
  }

  #watch(): void {
    if (this.#looking) return;
    // Timers come before input in a turn of the event loop: after a pause of this process, input that arrived during it is taken first.
    this.#looking = withoutOwner(() => setTimeout(() => setImmediate(() => this.#look()), LOOK_MS));
  }

  #look(): void {
    this.#looking = undefined;
    this.#endOverdraft();
    this.#endTheStill();
    this.#endTheSlow();
    if (this.#queues.size > 0 || this.#used > this.#total) this.#watch();
  }

  /** A message that exceeds the limits for long delays large messages of other projects: requests that slept delayed a body for 40 s. */
  #endOverdraft(): void {
    if (!this.#overdraft || performance.now() - this.#overdraft.since < this.#overdraftMs) return;
    const { share } = this.#overdraft;
    const project = projectOf(share);
    if ([...this.#queues].some((group) => (group.parent ?? group) !== project)) this.#end(share);
  }

  /** Ends shares without progress: those of the project with the most first, and no more of them than necessary. */
  #endTheStill(): void {
    const longAgo = performance.now() - this.#stillMs;
    const still = [...this.#shares].filter(
      ({ bytes, movedAt, held, resume }) => bytes > WORTH_ENDING && movedAt < longAgo && !held && !resume,
    );
    still.sort((a, b) => projectOf(b).used - projectOf(a).used || b.bytes - a.bytes);
    for (const share of still) {
      if (share.bytes === 0) continue; // it was ended together with another
      // A project that waits because of its own bytes ends no share of a project that holds less.
      const { used } = projectOf(share);
      const isAwaited = [...this.#queues].some((group) => (group.parent ?? group).used <= used);
      const isExcess = this.#used > this.#total && used >= this.#total / this.#projects.size;
      if (isAwaited || isExcess) this.#end(share);
    }
  }

  /**
   * Ends readers that leave more unread than there is room for: those of the project with the most first, and no more of them than necessary.
   * The largest of each project is spared, since it may be one large message; of all projects together only one is, after `overdraftMs`.
   */
  #endTheSlow(): void {
    const readers = [...this.#shares].filter(({ of, held }) => of === 'reader' && !held).sort(byBytes);
    const room = this.#total + ROOM_FOR_SMALL;
    if (sum(readers) - (readers[0]?.bytes ?? 0) <= room) return void (this.#crowdedSince = undefined);
    this.#crowdedSince ??= performance.now();
    const crowdedMs = performance.now() - this.#crowdedSince;
    if (crowdedMs < BURST_MS) return;
    const isLong = crowdedMs >= this.#overdraftMs;
    const unread = new Map<Group, number>();
    const others = readers.filter((share, index) => {
      const project = projectOf(share);
      const before = unread.get(project);
      const isSpared = isLong ? index === 0 : before === undefined;
      unread.set(project, (before ?? 0) + (isSpared ? 0 : share.bytes));
      return !isSpared;
    });
    others.sort((a, b) => unread.get(projectOf(b))! - unread.get(projectOf(a))! || byBytes(a, b));
    let excess = sum(others) - room;
    for (const share of others) {
      if (excess <= 0) return;
      excess -= share.bytes;
      if (share.bytes > 0) this.#end(share);
    }
  }

  #end(share: Share): void {
    this.#close(share);
    share.owned(share.end);
  }
}

const projectOf = ({ group }: Share): Group => group.parent ?? group;

const byBytes = (a: Share, b: Share) => b.bytes - a.bytes;

const sum = (shares: readonly Share[]) => shares.reduce((all, { bytes }) => all + bytes, 0);

const smallPart = (bytes: number) => (bytes <= SMALL ? bytes : 0);

const isWhole = ({ of, held }: Share) => of === 'reader' || held;

/** Counts bytes that came from a sender, whether they make the share larger or not. */
export function progress(share: Share, bytes: number): void {
  share.moved += bytes;
  if (share.moved < WORTH_ENDING) return;
  share.moved = 0;
  share.movedAt = performance.now();
}

export interface Share {
  /** Runs a callback for the owner of the share. The progress of another share calls it. */
  readonly owned: (work: () => void) => void;
  readonly group: Group;
  readonly of: 'reader' | 'sender';
  readonly end: () => void;
  bytes: number;
  movedAt: number;
  /** Bytes that came since then. */
  moved: number;
  /** This process keeps it from making progress, so it is not ended for that. */
  held: boolean;
  resume: (() => void) | undefined;
  /** The bytes that it waits to grow by. They are counted when there is room for them. */
  wanted: number;
  /** Sets its size, whether there is room or not. */
  set(bytes: number): void;
  /** Adds to its size. False: stop reading from the source until `resume` is called. */
  grow(bytes: number, resume: () => void): boolean;
  /** Sets whether this process keeps it from making progress. */
  hold(held: boolean): void;
  close(): void;
}

/** The budget of this process. */
export const memory = new ByteBudget();
