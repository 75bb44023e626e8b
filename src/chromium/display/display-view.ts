import type net from 'node:net';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import { watchOnly } from './rfb-watch.ts';

/** While more than this is buffered for the viewer, the display is not read. */
const FULL = 1024 * 1024;

interface DisplayViewOptions {
  readonly readOnly: boolean;
  /** The close code and reason for the viewer when the display ends. */
  readonly whenGone?: () => { code: number; reason: string };
}

/**
 * The live view of a headful session: connects the viewer to the session's display by RFB (VNC). For a read-only viewer,
 * messages that would change something are removed from the viewer's side.
 */
export function attachDisplay(
  connect: () => net.Socket,
  sink: WebSocketSink,
  options: DisplayViewOptions,
): WebSocketReceiver {
  const { readOnly, whenGone = () => ({ code: 1011, reason: 'The browser went away.' }) } = options;
  const display = connect();
  const allowed = readOnly ? watchOnly() : (data: Buffer) => data;
  let over = false;

  display.on('data', (data) => {
    sink.sendBinary([data], () => {
      if (display.isPaused() && sink.bufferedAmount < FULL) display.resume();
    });
    if (sink.bufferedAmount >= FULL) display.pause();
  });
  display.on('drain', () => sink.resume());
  display.on('error', () => {}); // the display has exited or never started; `close` follows
  display.on('close', () => {
    const { code, reason } = whenGone();
    end(code, reason);
  });

  function end(code: number, reason: string): void {
    if (over) return;
    over = true;
    display.destroy();
    sink.close(code, reason);
  }

  return {
    flush() {},
    receive(data) {
      if (over) return;
      const passed = allowed(data);
      if (passed === undefined) return end(1008, 'Read only: a viewer that only watches may not send this message.');
      if (passed.length > 0 && !display.write(passed)) sink.pause();
    },

    closed() {
      over = true;
      display.destroy();
    },
  };
}
