import type { Rectangle } from './display-client.ts';
import type { Key } from './keys.ts';
import type { Point } from './motion.ts';

export type Button = 'left' | 'middle' | 'right' | 'back' | 'forward';

/** Mouse, keyboard and screen of a session. */
export interface Hands {
  /** The size of the screen that coordinates refer to. */
  screen(): Promise<{ width: number; height: number }>;
  pointer(): Promise<Point>;
  move(to: Point): Promise<void>;
  /** `count`: the click count, 1 for a single click, 2 for a double click. */
  button(button: Button, down: boolean, count: number): Promise<void>;
  /** Notches of the wheel to the right and down, or (negative) to the left and up. One of them is zero. */
  wheel(right: number, down: number): Promise<void>;
  key(key: Key, down: boolean): Promise<void>;
  /** Types a text with any characters. */
  write(text: string): Promise<void>;
  screenshot(region: Rectangle | undefined): Promise<Buffer>;
  showPointer(shown: boolean): Promise<void>;
  /** Resolves when the input has arrived. */
  settled(): Promise<void>;
}

/** An action that this kind of session does not support, with a message for the client. */
export class Impossible extends Error {
  override readonly name = 'Impossible';
}
