import type { Clicked, Popup, ValueInput } from './viewer-protocol.ts';

/**
 * The functions that the service calls in pages (web/page.ts), by page-script.ts. They run in an isolated world, but on data of the page:
 * the service checks their results.
 */
export interface PageCalls {
  /** The frame with the focus, and the frame at a point of the page. */
  focusedFrameElement(): object | undefined;
  frameElementAt(x: number, y: number): object | undefined;
  /** Where the content of a frame begins. */
  cornerOf(frame: object): [left: number, top: number];

  /** The popup of the control with the focus, if it has one. */
  readControl(inputs: readonly ValueInput[], mostOptions: number, longest: number): Popup | undefined;
  /** How many options the popup has to go down to this one, counting those that it can choose. */
  wayTo(index: number): { open: boolean; steps: number } | undefined;
  select(index: number): void;
  write(value: string, inputs: readonly string[]): void;
  isOpen(): boolean;

  /** Starts to watch for a context menu; `takeMenu` returns the clicked element, unless the page prevented its menu. */
  watchMenu(): void;
  takeMenu(longest: number): Clicked | undefined;

  /** Starts to watch for a copy; `takeCopy` returns the copied text: the text that the page set, or else the selection. */
  watchCopy(): void;
  takeCopy(longest: number): string | undefined;
  /** Copies a text that is not selected in the page. Needs no permission, and no https. */
  writeClipboard(text: string): boolean;
}
