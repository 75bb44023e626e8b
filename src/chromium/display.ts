import type { Viewport } from './flags.ts';
import { displayKeymap } from './keymap.ts';
import { resizeDisplay } from './rfb.ts';

/**
 * The display of a headful session: TigerVNC's Xvnc, an X server whose screen is an RFB stream. It runs in the session's
 * own sandbox, where /tmp and the abstract sockets are private, so there is no display number to fight over.
 *
 * The result is a command that starts the display, then `command` on it, and takes the display down when that ends.
 *
 * The screen starts a pixel larger than the viewport, and `fitDisplay` then makes it fit. A window that is exactly as large as
 * the screen when its size is set is made a pixel smaller by Chromium, because some window managers would take it for a
 * full-screen one; and a kiosk, which takes the screen's size, is a pixel smaller for the same reason.
 */
export function onDisplay(command: readonly string[], viewport: Viewport, rfbSocket: string): string[] {
  const { width, height, refreshRate = 60 } = viewport;
  return ['sh', '-c', SCRIPT, 'corral', rfbSocket, `${width + 1}x${height + 1}`, String(refreshRate), ...command];
}

/**
 * Gives the display the size of the window. While the browser runs, set the window's bounds over CDP first
 * (Browser.setWindowBounds) and then the display's: the other way around the window would be a pixel short.
 */
export function fitDisplay(rfbPath: string, viewport: Viewport, signal: AbortSignal): Promise<void> {
  return resizeDisplay(rfbPath, viewport, signal);
}

/** Beside its socket. */
export const DISPLAY_LOG = 'xvnc.log';

const XVNC = [
  'Xvnc',
  '-rfbunixpath "$1" -rfbunixmode 0600', // the live view's way in; its directory is the session's alone
  '-geometry "$2" -depth 24', // the screen is the viewport; the window fills it
  '-FrameRate "$3"', // updates a second for each viewer, at most
  '-rfbport -1', // no TCP for viewers
  '-nolisten tcp', // nor for X clients
  '-SecurityTypes None', // whoever may open the socket may watch; the service asks for tokens
  '-AlwaysShared', // several viewers at once
  '-AcceptSetDesktopSize=1', // the viewport changes while the browser runs
  '-br -noreset', // black until the window is there; the last client's leaving is no reason to start over
  '-Log *:stderr:30', // into a file of its own: the log tail is for Chromium's words
  '-displayfd 5', // picks a free number, and says which when it is ready
].join(' ');

/**
 * Nothing waits on a clock: opening the fifo waits for Xvnc to be started, reading it for Xvnc to be ready or gone. The
 * shell stays: where no namespace takes the display along, somebody has to.
 */
const SCRIPT = `
set -f
ready="$(mktemp -u)"
mkfifo -m 600 "$ready" || exit 1
log="\${1%/*}/${DISPLAY_LOG}"
${XVNC} 3<&- 4>&- 5>"$ready" 2>"$log" &
display=$!
read -r number <"$ready" || { echo 'the display did not start'; tail -n 5 "$log"; exit 1; }
rm "$ready"
xkbcomp -w0 - ":$number" <<'KEYS' || echo 'the keymap could not be set; letters beyond ASCII may get lost'
${displayKeymap()}
KEYS
shift 3
DISPLAY=":$number" "$@"
code=$?
kill "$display"
exit "$code"
`;
