import { setTimeout as sleep } from 'node:timers/promises';
import { oneByOne } from '../../lib/one-at-a-time.ts';
import type { Clipboard } from '../pages/clipboard.ts';
import type { Rectangle } from './display-client.ts';
import { Impossible, type Button, type Hands } from './hands.ts';
import { chord, type Key } from './keys.ts';
import { naturalMs, smoothWay, stepMs, straightWay, type Point } from './motion.ts';

export { Impossible } from './hands.ts';

/** Actions, which are performed one after the other. */
export type Action =
  | { type: 'click'; at: Point; button: Button; click: 'down' | 'up' | 'click'; count: number; holdKeys: string[] }
  | { type: 'move'; to: Point; smooth: boolean; durationMs: number | undefined; holdKeys: string[] }
  | {
      type: 'drag';
      path: Point[];
      button: Button;
      delayMs: number;
      stepsPerSegment: number;
      stepDelayMs: number;
      smooth: boolean;
      durationMs: number | undefined;
      holdKeys: string[];
    }
  | { type: 'scroll'; at: Point; right: number; down: number; holdKeys: string[] }
  | { type: 'type'; text: string; delayMs: number }
  | { type: 'press'; keys: string[]; durationMs: number; holdKeys: string[] }
  | { type: 'cursor'; hidden: boolean }
  | { type: 'sleep'; ms: number };

/** A session as a person in front of its screen uses it. */
export interface Computer {
  /**
   * Performs all actions in a row, without those of other requests in between, and stops at the first that fails. Rejects when the signal
   * aborts, also while it waits for other requests.
   */
  act(actions: readonly Action[], signal: AbortSignal): Promise<void>;
  screenshot(region: Rectangle | undefined): Promise<Buffer>;
  pointer(): Promise<Point>;
  readonly clipboard: Clipboard;
}

/** A person's click takes a moment; some pages check how long the button was down. */
const CLICK_MS = 15;
const BETWEEN_CLICKS_MS = 40;
/** The pause between the two directions of a wheel: simultaneous ones become one diagonal movement. */
const TURN_MS = 60;

export function computer(hands: Hands, clipboard: Clipboard): Computer {
  const inTurn = oneByOne();

  async function inside(...points: Point[]): Promise<void> {
    const { width, height } = await hands.screen();
    for (const { x, y } of points) {
      if (x < 0 || y < 0 || x >= width || y >= height) {
        throw new Impossible(`The point ${x}, ${y} is outside of the screen, which is ${width} by ${height}.`);
      }
    }
  }

  const holding = (names: readonly string[], work: () => Promise<void>) => holdDown(hands, keysOf(names), work);

  async function act(action: Action, signal: AbortSignal): Promise<void> {
    switch (action.type) {
      case 'click': {
        await inside(action.at);
        return holding(action.holdKeys, async () => {
          await hands.move(action.at);
          if (action.click !== 'click') return hands.button(action.button, action.click === 'down', 1);
          for (let count = 1; count <= action.count; count++) {
            if (count > 1) await sleep(BETWEEN_CLICKS_MS, undefined, { signal });
            await hands.button(action.button, true, count);
            await sleep(CLICK_MS);
            await hands.button(action.button, false, count);
          }
        });
      }
      case 'move': {
        await inside(action.to);
        return holding(action.holdKeys, async () => {
          if (!action.smooth) return hands.move(action.to);
          const from = await hands.pointer();
          const ms = action.durationMs ?? naturalMs(from, action.to);
          await along(hands, smoothWay(from, action.to, ms), stepMs, signal);
        });
      }
      case 'drag': {
        await inside(...action.path);
        return holding(action.holdKeys, () => drag(hands, action, signal));
      }
      case 'scroll': {
        await inside(action.at);
        return holding(action.holdKeys, async () => {
          await hands.move(action.at);
          if (action.down !== 0) await hands.wheel(0, action.down);
          if (action.down !== 0 && action.right !== 0) await sleep(TURN_MS, undefined, { signal });
          if (action.right !== 0) await hands.wheel(action.right, 0);
        });
      }
      case 'type': {
        if (action.delayMs === 0) return hands.write(action.text);
        for (const [i, character] of Array.from(action.text).entries()) {
          if (i > 0) await sleep(action.delayMs, undefined, { signal });
          await hands.write(character);
        }
        return;
      }
      case 'press': {
        const chords = action.keys.map((text) => keysOf([text]));
        return holding(action.holdKeys, async () => {
          const { durationMs } = action;
          if (durationMs > 0) return holdDown(hands, chords.flat(), () => sleep(durationMs, undefined, { signal }));
          for (const keys of chords) await holdDown(hands, keys, async () => {});
        });
      }
      case 'cursor':
        return hands.showPointer(!action.hidden);
      case 'sleep':
        return sleep(action.ms, undefined, { signal });
    }
  }

  return {
    clipboard,

    act: (actions, signal) =>
      inTurn(async () => {
        for (const [i, action] of actions.entries()) {
          signal.throwIfAborted();
          await act(action, signal).catch((error: unknown) => {
            if (actions.length > 1 && error instanceof Impossible)
              throw new Impossible(`actions.${i}: ${error.message} The actions before it were done.`);
            throw error;
          });
        }
        await hands.settled();
      }, signal),

    async screenshot(region) {
      if (region) {
        const { width, height } = await hands.screen();
        const fits =
          region.x >= 0 &&
          region.y >= 0 &&
          region.width > 0 &&
          region.height > 0 &&
          region.x + region.width <= width &&
          region.y + region.height <= height;
        if (!fits) throw new Impossible(`region must lie within the screen, which is ${width} by ${height}.`);
      }
      return hands.screenshot(region);
    },

    pointer: () => hands.pointer(),
  };
}

/** Holds keys down during `work`, and releases them in any case. */
async function holdDown(hands: Hands, keys: readonly Key[], work: () => Promise<void>): Promise<void> {
  const down: Key[] = [];
  try {
    for (const key of keys) {
      down.push(key);
      await hands.key(key, true);
    }
    await work();
  } finally {
    for (const key of down.toReversed()) await hands.key(key, false).catch(() => {});
  }
}

async function along(hands: Hands, way: readonly Point[], pauseMs: number, signal: AbortSignal): Promise<void> {
  const started = performance.now();
  for (const [i, point] of way.entries()) {
    signal.throwIfAborted();
    await hands.move(point);
    const due = started + (i + 1) * pauseMs - performance.now();
    if (due > 0 && i < way.length - 1) await sleep(due, undefined, { signal });
  }
}

async function drag(hands: Hands, action: Action & { type: 'drag' }, signal: AbortSignal): Promise<void> {
  const [first, ...rest] = action.path;
  await hands.move(first!);
  await hands.button(action.button, true, 1);
  try {
    if (action.delayMs > 0) await sleep(action.delayMs, undefined, { signal });
    let from = first!;
    for (const to of rest) {
      if (action.smooth) {
        const ms = action.durationMs === undefined ? naturalMs(from, to) : action.durationMs / rest.length;
        await along(hands, smoothWay(from, to, ms), stepMs, signal);
      } else await along(hands, straightWay(from, to, action.stepsPerSegment), action.stepDelayMs, signal);
      from = to;
    }
  } finally {
    await hands.button(action.button, false, 1);
  }
}

function keysOf(names: readonly string[]): Key[] {
  return names.flatMap((name) => {
    const keys = chord(name);
    if (typeof keys !== 'string') return keys;
    throw new Impossible(
      `'${keys}' is not a key. Use an X11 keysym such as Return or Page_Down, a character, or a chord such as Ctrl+t.`,
    );
  });
}
