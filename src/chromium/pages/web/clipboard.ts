import { focusedElement, isInput, isTextArea } from './elements.ts';

declare global {
  /** Ends the watch, from one call of the service to the next. */
  var corralCopied: (() => string) | undefined;
}

export function watchCopy(): void {
  let text = selectedText();
  const listen = (event: ClipboardEvent) => {
    if (event.defaultPrevented) text = event.clipboardData?.getData('text/plain') ?? '';
  };
  addEventListener('copy', listen);
  addEventListener('cut', listen);
  globalThis.corralCopied = () => {
    removeEventListener('copy', listen);
    removeEventListener('cut', listen);
    globalThis.corralCopied = undefined;
    return text;
  };
}

export const takeCopy = (longest: number) => globalThis.corralCopied?.().slice(0, longest);

function selectedText(): string {
  const element = focusedElement();
  if ((isInput(element) || isTextArea(element)) && element.type !== 'password') {
    const { selectionStart: start, selectionEnd: end } = element; // null for inputs that have no text to select
    if (start !== null && end !== null && start !== end) return element.value.slice(start, end);
  }
  return String(getSelection() ?? '');
}

export function writeClipboard(text: string): boolean {
  let done = false;
  const write = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
    done = true;
  };
  addEventListener('copy', write, { capture: true, once: true });
  document.execCommand('copy');
  removeEventListener('copy', write, { capture: true });
  return done;
}
