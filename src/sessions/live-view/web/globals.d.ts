/** The events of noVNC for fingers on the display. */
interface Gesture {
  readonly type: 'onetap' | 'twotap' | 'threetap' | 'drag' | 'longpress' | 'twodrag' | 'pinch';
  readonly clientX: number;
  readonly clientY: number;
}

interface HTMLElementEventMap {
  gesturestart: CustomEvent<Gesture>;
  gesturemove: CustomEvent<Gesture>;
  gestureend: CustomEvent<Gesture>;
}

interface DocumentEventMap {
  /** A panel opens: see panel.ts. */
  panel: Event;
}

interface Navigator {
  /** Chromium only. */
  readonly keyboard?: { lock(): Promise<void> };
}

/** noVNC has no types. These are the parts of its modules that the display's view uses. */
declare module '@novnc/novnc/core/rfb.js' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: WebSocket, options: { shared: boolean });
    scaleViewport: boolean;
    viewOnly: boolean;
    focusOnClick: boolean;
    background: string;
    qualityLevel: number;
    compressionLevel: number;
    /** Without `down`, the key is pressed and released. */
    sendKey(keysym: number, code: string | null, down?: boolean): void;
    clipboardPasteFrom(text: string): void;
    addEventListener(type: 'connect', listener: () => void): void;
    addEventListener(type: 'clipboard', listener: (event: CustomEvent<{ text: string }>) => void): void;
  }
}

declare module '@novnc/novnc/core/input/keyboard.js' {
  export default class Keyboard {
    constructor(target: HTMLElement);
    onkeyevent: (keysym: number, code: string, down: boolean) => void;
    grab(): void;
    ungrab(): void;
  }
}

declare module '@novnc/novnc/core/input/keysym.js' {
  const KeyTable: Readonly<Record<'XK_Alt_L' | 'XK_BackSpace' | 'XK_Control_L' | 'XK_Return', number>>;
  export default KeyTable;
}
