import type { Clicked } from '../viewer-protocol.ts';
import { elementAt, isInput, isTextArea } from './elements.ts';

declare global {
  /** Ends the watch, from one call of the service to the next. */
  var corralMenu: ((longest: number) => Clicked | undefined) | undefined;
}

export function watchMenu(): void {
  let seen: MouseEvent | undefined;
  const listen = (event: MouseEvent) => {
    seen = event;
  };
  addEventListener('contextmenu', listen, true);
  globalThis.corralMenu = (longest) => {
    removeEventListener('contextmenu', listen, true);
    globalThis.corralMenu = undefined;
    return seen && !seen.defaultPrevented ? clickedAt(seen, longest) : undefined;
  };
}

export const takeMenu = (longest: number) => globalThis.corralMenu?.(longest);

function clickedAt({ clientX, clientY }: MouseEvent, longest: number): Clicked {
  const target = elementAt(clientX, clientY);
  const link = target?.closest<HTMLAnchorElement | HTMLAreaElement>('a[href], area[href]')?.href;
  const found = target?.closest('input, textarea') ?? null;
  const field = isInput(found) || isTextArea(found) ? found : undefined;
  const selected = field ? field.selectionStart !== field.selectionEnd : String(getSelection() ?? '') !== '';
  const isContentEditable = target !== null && 'isContentEditable' in target && target.isContentEditable === true;
  return {
    link: typeof link === 'string' && link.length <= longest ? link : '', // of SVG, it is an object
    selected: selected && field?.type !== 'password',
    editable: isContentEditable || Boolean(field && !field.readOnly && !field.disabled),
  };
}
