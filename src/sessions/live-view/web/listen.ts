/** Adds a listener that is removed when the connection ends. */
export interface Listen {
  <T extends keyof WebSocketEventMap>(
    target: WebSocket,
    type: T,
    listener: (event: WebSocketEventMap[T]) => unknown,
    options?: AddEventListenerOptions,
  ): void;
  <T extends keyof DocumentEventMap>(
    target: Document,
    type: T,
    listener: (event: DocumentEventMap[T]) => unknown,
    options?: AddEventListenerOptions,
  ): void;
  <T extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    type: T,
    listener: (event: HTMLElementEventMap[T]) => unknown,
    options?: AddEventListenerOptions,
  ): void;
}

/** Without a signal, listeners stay as long as the page does. */
export function listenUntil(signal?: AbortSignal): Listen {
  return (
    target: EventTarget,
    type: string,
    listener: (event: never) => unknown,
    options: AddEventListenerOptions = {},
  ) => target.addEventListener(type, listener as EventListener, signal ? { signal, ...options } : options);
}
