/** What the service runs in pages of sessions, in an isolated world: see page-calls.ts. */
import type { PageCalls } from '../page-calls.ts';
import { takeCopy, watchCopy, writeClipboard } from './clipboard.ts';
import { cornerOf, focusedFrameElement, frameElementAt } from './frames.ts';
import { takeMenu, watchMenu } from './menu.ts';
import { isOpen, readControl, select, wayTo, write } from './popups.ts';

export const calls: PageCalls = {
  focusedFrameElement,
  frameElementAt,
  cornerOf,
  readControl,
  wayTo,
  select,
  write,
  isOpen,
  watchMenu,
  takeMenu,
  watchCopy,
  takeCopy,
  writeClipboard,
};
