/** The shortcuts of a browser's window, which a headless browser does not have. */
import { isMac, isShortcut } from './keyboard.ts';

export type Shortcut = 'reload' | 'address' | 'newTab' | 'closeTab' | 'back' | 'forward';

const shortcuts: [fits: (event: KeyboardEvent) => boolean, name: Shortcut][] = [
  [(event) => plain(event, 'F5') || isShortcut(event, 'r'), 'reload'],
  [(event) => isShortcut(event, 'l'), 'address'],
  [(event) => isShortcut(event, 't'), 'newTab'],
  [(event) => isShortcut(event, 'w'), 'closeTab'],
  [(event) => travels(event, 'ArrowLeft', '['), 'back'],
  [(event) => travels(event, 'ArrowRight', ']'), 'forward'],
];

/** What the keys mean in a window, or undefined: then they are the page's. */
export function shortcutOf(event: KeyboardEvent): Shortcut | undefined {
  return event.shiftKey ? undefined : shortcuts.find(([fits]) => fits(event))?.[1];
}

const plain = (event: KeyboardEvent, key: string) =>
  event.key === key && !event.ctrlKey && !event.metaKey && !event.altKey;

/** Alt and an arrow; on a Mac, Command and a bracket. */
function travels(event: KeyboardEvent, arrow: string, bracket: string): boolean {
  if (isMac) return event.metaKey && !event.ctrlKey && !event.altKey && event.key === bracket;
  return event.key === arrow && event.altKey && !event.ctrlKey && !event.metaKey;
}
