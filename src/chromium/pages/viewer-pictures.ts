import { atBest, follow, levelOf, type Level } from './cast-levels.ts';
import type { Casts, Picture, Seat, Size } from './cast.ts';
import type { Shown, Viewer } from './viewer.ts';

/** Pictures that are on their way to a viewer, or that it draws. */
const MAX_UNDRAWN = 2;
const LOOK_MS = 1000;

/**
 * The pictures of the shown tab, from the cast that the viewer shares with others (cast.ts). At most two pictures are on their way; while
 * they are, newer ones are left out, and then the viewer gets the newest. So a slow viewer gets fewer pictures and never older ones.
 *
 * With the quality `auto` the level follows the viewer's connection (`follow` in cast-levels.ts): a look each second, while there is
 * something to look at.
 */
export function viewerPictures(viewer: Viewer, casts: Pick<Casts, 'join'>) {
  const { sink } = viewer;
  let size: Size | undefined;
  let quality: Exclude<Level, 'least'> | 'auto' = 'auto';
  let standing = atBest;
  let tab: Shown | undefined;
  let seat: Seat | undefined;
  let level: Level | undefined;
  /** The picture that the viewer was sent last, by its number in the cast of `seat`. */
  let last = 0;
  /** In the order in which they were sent, also those of casts that the viewer has left. */
  const undrawn: { readonly from: Seat; readonly number: number; readonly sentAt: number }[] = [];
  /** Of this look: the longest time that a picture took, and whether the viewer drew any. */
  let delay = 0;
  let drawnAny = false;
  let looking: NodeJS.Timeout | undefined;
  void viewer.client.closed.then(stop);

  const watcher = {
    get size() {
      return size;
    },
    offer(picture: Picture): void {
      if (!viewer.reads()) return;
      if (undrawn.length >= MAX_UNDRAWN || picture.number <= last || !seat || !tab || viewer.shown !== tab) return;
      const { number, jpeg, width, height } = picture;
      if (tab.viewport !== `${width}x${height}`) {
        tab.viewport = `${width}x${height}`;
        viewer.tell({ type: 'viewport', width, height });
      }
      last = number;
      undrawn.push({ from: seat, number, sentAt: performance.now() });
      sink.sendBinary([jpeg]);
      lookLater();
    },
    failed: (reason: string) => viewer.end(1011, reason),
  };

  function offerNewest(): void {
    if (seat?.newest) watcher.offer(seat.newest);
  }

  /** Takes the place in the cast of the shown tab that the quality asks for. A cast that has a picture gives it at once. */
  function settle(): void {
    if (!tab || viewer.over) return;
    const wanted = quality === 'auto' ? levelOf(standing) : quality;
    if (seat && wanted === level) return;
    const previous = seat;
    level = wanted;
    last = 0;
    seat = casts.join(tab.id, wanted, watcher);
    previous?.leave();
    offerNewest();
  }

  function stop(): void {
    seat?.leave();
    seat = tab = undefined;
  }

  function lookLater(): void {
    if (quality === 'auto') looking ??= viewer.later(LOOK_MS, look);
  }

  /** A check in which the viewer has drawn none of the sent pictures is ignored. */
  function look(): void {
    looking = undefined;
    if (quality !== 'auto') return;
    if (drawnAny || undrawn.length === 0) standing = follow(standing, { delay, unsent: sink.bufferedAmount });
    delay = 0;
    drawnAny = false;
    settle();
    if (undrawn.length > 0 || standing.rung > 0) lookLater();
  }

  return {
    /** Shows this tab from now on. */
    start(shown: Shown): void {
      stop();
      tab = shown;
      settle();
    },

    /** Leaves the cast of the tab that was shown: another one follows, or none. */
    stop,

    /** The viewer has drawn a picture. More messages than sent pictures are ignored. */
    drawn(): void {
      const picture = undrawn.shift();
      if (!picture) return;
      delay = Math.max(delay, performance.now() - picture.sentAt);
      drawnAny = true;
      picture.from.drawn(picture.number);
      offerNewest();
    },

    setQuality(wanted: typeof quality): void {
      quality = wanted;
      standing = atBest;
      settle();
      if (undrawn.length > 0) lookLater();
    },

    resize({ width, height }: Size): void {
      if (size?.width === width && size.height === height) return;
      size = { width, height };
      seat?.resized();
    },
  };
}
