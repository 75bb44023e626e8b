import type { ViewerMessage } from '../../../chromium/pages/viewer-protocol.ts';
import type { clipboardPanel } from './clipboard.ts';
import { $ } from './elements.ts';
import { listenUntil, type Listen } from './listen.ts';

/** The page around a view. */
export interface Ui {
  readonly readOnly: boolean;
  readonly clipboard: ReturnType<typeof clipboardPanel>;
  /** The first picture has arrived. */
  connected(): void;
  state(name: string, text: string, detail?: string): void;
  notice(text: string): void;
  pageTitle(title?: string): void;
}

/** The view of one engine, over a connection. `signal` ends with the connection. */
export type MakeView = (socket: WebSocket, ui: Ui, signal: AbortSignal) => void;

export type Send = (message: ViewerMessage) => void;

/** What the parts of a view share. */
export interface Parts {
  readonly readOnly: boolean;
  readonly signal: AbortSignal;
  readonly send: Send;
  /** Like `send`; does nothing for viewers that only watch. */
  readonly act: Send;
  readonly listen: Listen;
  readonly notice: Ui['notice'];
  /** Moves the focus to the text field that receives the keys. */
  focus(): void;
}

export function partsOf(socket: WebSocket, { readOnly, notice }: Ui, signal: AbortSignal): Parts {
  const send: Send = (message) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  return {
    readOnly,
    signal,
    send,
    act: readOnly ? () => {} : send,
    listen: listenUntil(signal),
    notice,
    focus: () => $('keyboard').focus({ preventScroll: true }),
  };
}
