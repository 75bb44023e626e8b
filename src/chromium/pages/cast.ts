import type { Log } from '../../lib/log.ts';
import { anyText, object } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { isAttached, isScreencastFrame, type ScreencastFrame } from '../cdp/shapes.ts';
import { LEVELS, type Level } from './cast-levels.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A picture of a tab. `width` and `height` are those of the page, in CSS pixels; `number` counts the pictures of one cast. */
export interface Picture extends Size {
  readonly number: number;
  readonly jpeg: Buffer;
}

/** A viewer, as a cast sees it. */
export interface Watcher {
  /** The size of the picture in the viewer; undefined until it has said so. */
  readonly size: Size | undefined;
  /** A picture that is newer than all before. A watcher without room for it leaves it: it asks for the newest one when it has room. */
  offer(picture: Picture): void;
  /** The browser does what no browser does. */
  failed(reason: string): void;
}

/** A watcher's place in a cast. */
export interface Seat {
  /** The newest picture, if there is one yet. */
  readonly newest: Picture | undefined;
  /** The watcher has drawn the picture of this number. */
  drawn(number: number): void;
  /** The watcher's size has changed. */
  resized(): void;
  leave(): void;
}

/**
 * Pictures a second, unless the session has a refresh rate. At 1000×700 a capture takes 9 ms of the GPU process for each frame of the page, and
 * encoding 15 to 20 ms of the browser process, skipped for pictures that are not acknowledged. At the page's own rate one cast takes a
 * whole core, and on two cores the page falls from 60 frames a second to 28.
 */
const RATE = 25;
/** Pictures that Chromium sends before the first of them is acknowledged. */
const MAX_IN_FLIGHT = 2;
/** A restart forgets the pictures before it, so some more may arrive. */
const MOST_IN_FLIGHT = 20;
/** If no picture arrives for this long, one is requested. */
const QUIET_MS = 150;
/** So often is a start tried, at that interval. */
const MOST_STARTS = 20;
/** Until a watcher has said its size. */
const USUAL_SIZE: Size = { width: 1920, height: 1080 };

const isDetached = object({ sessionId: anyText });

interface CastOptions {
  readonly tabId: string;
  readonly level: Level;
  readonly refreshRate: () => number | undefined;
  readonly log: Log;
  /** Called once, when the cast is over: its last watcher has left, its tab is closed, or the browser has exited. */
  readonly over: () => void;
}

/**
 * Pictures of one tab at one level, encoded once for all watchers. It has its own client of the multiplexer and closes it at its end,
 * which frees all its state in Chromium.
 *
 * A picture is acknowledged to Chromium when the first of its watchers has drawn it. So the fastest watcher sets the pace, up to the rate
 * of the level; the others leave out pictures; and if none of them draws, then none is encoded.
 */
class Cast {
  readonly #client: LocalClient;
  readonly #options: CastOptions;
  readonly #watchers = new Set<Watcher>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #sessionId: string | undefined;
  #newest: Picture | undefined;
  /** Pictures that no watcher has drawn yet: their numbers, and Chromium's. */
  #undrawn: { readonly number: number; readonly frame: number }[] = [];
  /** Acknowledgements that wait for their time. */
  #waiting = 0;
  #acknowledgedAt = -Infinity;
  /** All that Chromium may have in flight was in flight: it may have dropped pictures, perhaps the last one. */
  #missed = false;
  /** Counts the starts of the screencast: events of an earlier one are ignored. */
  #starts = 0;
  #bounds = '';
  #over = false;

  constructor(client: LocalClient, options: CastOptions) {
    this.#client = client;
    this.#options = options;
    client.on('Page.screencastFrame', isScreencastFrame, (frame, sessionId) => {
      if (!this.#over && sessionId !== undefined && sessionId === this.#sessionId) this.#take(frame);
    });
    client.on('Target.detachedFromTarget', isDetached, ({ sessionId }) => {
      if (sessionId === this.#sessionId) this.#end();
    });
    void client.closed.then(() => this.#end());
  }

  join(watcher: Watcher): Seat {
    this.#watchers.add(watcher);
    if (this.#starts === 0) void this.#attach();
    else this.#fit();
    const newest = () => this.#newest;
    return {
      get newest() {
        return newest();
      },
      drawn: (number) => this.#watchers.has(watcher) && this.#drawn(number),
      resized: () => this.#watchers.has(watcher) && this.#fit(),
      leave: () => {
        if (!this.#watchers.delete(watcher)) return;
        if (this.#watchers.size === 0) this.#end();
        else this.#fit();
      },
    };
  }

  async #attach(): Promise<void> {
    this.#starts = 1;
    try {
      const target = { targetId: this.#options.tabId, flatten: true };
      const { sessionId } = await this.#client.ask(isAttached, 'Target.attachToTarget', target);
      if (this.#over) return;
      this.#sessionId = sessionId;
      await this.#start();
    } catch (error) {
      if (!this.#over) this.#options.log.debug({ error, tab: this.#options.tabId }, 'screencast.not_started'); // the tab is closed
      this.#end();
    }
  }

  /** As large as the largest watcher needs it. The others make it smaller themselves. */
  #wanted(): Size {
    const sizes = [...this.#watchers].flatMap(({ size }) => size ?? []);
    const { scale } = LEVELS[this.#options.level];
    const largest = (side: keyof Size) =>
      Math.max(...(sizes.length > 0 ? sizes : [USUAL_SIZE]).map((size) => size[side]));
    return {
      width: clamp(Math.round(largest('width') * scale), 200, 3840),
      height: clamp(Math.round(largest('height') * scale), 150, 2160),
    };
  }

  /**
   * The first picture after a start arrives even if the page does not change. Chromium refuses to start while a navigation replaces the
   * page ("Not attached to an active page"), as it does in a tab that was just made.
   */
  async #start(): Promise<void> {
    const turn = this.#starts;
    for (let tries = 1; !this.#over && turn === this.#starts; tries++) {
      try {
        return await this.#tryStart();
      } catch (error) {
        if (this.#over || tries === MOST_STARTS) throw error;
      }
      await new Promise<void>((resolve) => this.#later(QUIET_MS, resolve));
    }
  }

  async #tryStart(): Promise<void> {
    const { width, height } = this.#wanted();
    this.#bounds = `${width}x${height}`;
    const { quality } = LEVELS[this.#options.level];
    const picture = { format: 'jpeg', quality, everyNthFrame: 1, maxFramesInFlight: MAX_IN_FLIGHT } as const;
    const bounds = { maxWidth: width, maxHeight: height };
    await this.#client.send('Page.startScreencast', { ...picture, ...bounds }, this.#sessionId);
  }

  #fit(): void {
    if (this.#sessionId === undefined) return; // it starts with the size that is wanted then
    const { width, height } = this.#wanted();
    if (this.#bounds === `${width}x${height}`) return;
    this.#bounds = `${width}x${height}`;
    void this.#restart();
  }

  async #restart(): Promise<void> {
    this.#starts += 1;
    const turn = this.#starts;
    this.#undrawn = [];
    this.#missed = false;
    try {
      await this.#client.send('Page.stopScreencast', {}, this.#sessionId);
      if (turn === this.#starts && !this.#over) await this.#start();
    } catch (error) {
      if (!this.#over) this.#options.log.debug({ error, tab: this.#options.tabId }, 'screencast.not_restarted');
    }
  }

  #take({ data, metadata, sessionId: frame }: ScreencastFrame): void {
    if (this.#undrawn.length + this.#waiting >= MOST_IN_FLIGHT) return this.#fail();
    const { deviceWidth: width, deviceHeight: height } = metadata;
    const number = (this.#newest?.number ?? 0) + 1;
    const picture = { number, jpeg: Buffer.from(data, 'base64'), width, height };
    this.#newest = picture;
    this.#undrawn.push({ number, frame });
    if (this.#undrawn.length + this.#waiting >= MAX_IN_FLIGHT) this.#missed = true;
    for (const watcher of this.#watchers) watcher.offer(picture);
  }

  /** An older picture that no watcher has drawn will not be drawn any more. */
  #drawn(number: number): void {
    while (this.#undrawn[0] && this.#undrawn[0].number <= number) this.#acknowledgeInTime(this.#undrawn.shift()!.frame);
  }

  /** The rate is kept by acknowledging no faster than that. */
  #acknowledgeInTime(frame: number): void {
    const rate = Math.min(this.#options.refreshRate() ?? RATE, LEVELS[this.#options.level].rate);
    const now = performance.now();
    this.#acknowledgedAt = Math.max(now, this.#acknowledgedAt + 1000 / rate);
    if (this.#acknowledgedAt === now) return this.#acknowledge(frame);
    this.#waiting += 1;
    this.#later(this.#acknowledgedAt - now, () => {
      this.#waiting -= 1;
      this.#acknowledge(frame);
    });
  }

  /** If pictures were dropped before, the watchers may lack the newest one. */
  #acknowledge(frame: number): void {
    this.#client.send('Page.screencastFrameAck', { sessionId: frame }, this.#sessionId).catch(() => {}); // the tab is closed
    if (!this.#missed || !this.#idle) return;
    this.#missed = false;
    this.#later(QUIET_MS, () => {
      if (this.#idle && !this.#missed) void this.#restart();
    });
  }

  get #idle(): boolean {
    return this.#undrawn.length + this.#waiting === 0;
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  #fail(): void {
    const watchers = [...this.#watchers];
    this.#end();
    for (const watcher of watchers) watcher.failed('The browser sends more pictures than were requested.');
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#watchers.clear();
    this.#newest = undefined;
    this.#client.close();
    this.#options.over();
  }
}

/** The casts of a browser that are watched, each by all viewers of one tab at one level. */
export interface Casts {
  join(tabId: string, level: Level, watcher: Watcher): Seat;
  readonly count: number;
}

export function castsOf(
  mux: { attachLocal(): LocalClient },
  { refreshRate = () => undefined, log }: { refreshRate?: () => number | undefined; log: Log },
): Casts {
  const casts = new Map<string, Cast>();
  return {
    join(tabId, level, watcher) {
      const key = `${level} ${tabId}`;
      const known = casts.get(key);
      if (known) return known.join(watcher);
      const over = () => void casts.delete(key);
      const cast = new Cast(mux.attachLocal(), { tabId, level, refreshRate, log, over });
      casts.set(key, cast);
      return cast.join(watcher);
    },
    get count() {
      return casts.size;
    },
  };
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
