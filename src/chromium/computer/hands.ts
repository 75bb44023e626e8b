import type { Rectangle } from './display-client.ts';
import type { Key } from './keys.ts';
import type { Point } from './motion.ts';

export type Button = 'left' | 'middle' | 'right' | 'back' | 'forward';

/** What can be done to a session with a mouse and a keyboard, and what can be seen of it. */
export interface Hands {
  /** The screen that coordinates are on. */
  screen(): Promise<{ width: number; height: number }>;
  pointer(): Promise<Point>;
  move(to: Point): Promise<void>;
  /** `count`: the how manieth click in a row this belongs to. */
  button(button: Button, down: boolean, count: number): Promise<void>;
  /** So many notches of the wheel to the right and down, or (negative) to the left and up. One of them is zero. */
  wheel(right: number, down: number): Promise<void>;
  key(key: Key, down: boolean): Promise<void>;
  /** Writes a text, whatever characters it has. */
  write(text: string): Promise<void>;
  screenshot(region: Rectangle | undefined): Promise<Buffer>;
  showPointer(shown: boolean): Promise<void>;
  /** Resolves when what was done has arrived. */
  settled(): Promise<void>;
}

/** Something that this kind of session cannot do, for the person who asked. */
export class Impossible extends Error {
  override readonly name = 'Impossible';
}
