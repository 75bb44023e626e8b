import type { Viewport } from '../display/viewport.ts';

/**
 * Every Chromium flag the service passes, with its reason on the same line. A flag without a reason is a flag nobody dares
 * to remove; a reason without a flag belongs in sandbox.ts.
 *
 * There is no --no-sandbox here, and there must never be: Chromium's own sandbox is what stands between a hostile page and the
 * session's home, and bubblewrap is what stands between the session and everything else.
 */

export type BrowserKind = 'headless-shell' | 'headless' | 'headful';

export interface FlagOptions {
  readonly kind: BrowserKind;
  readonly viewport: Viewport;
  readonly stealth: boolean;
  readonly kiosk: boolean;
  readonly gpu: boolean;
  readonly userDataDir: string;
  /** Where the session's egress gateway listens, seen from Chromium. */
  readonly proxyPort: number;
  /** The engine's version, for the user agent of a stealthy browser; undefined keeps the engine's own. */
  readonly version: string | undefined;
  /** What of an earlier run comes back with its profile: its undated cookies, or those and its open tabs. */
  readonly resume?: 'cookies' | 'tabs' | undefined;
}

/** The whole command line after the binary's path, the one page to open included. */
export function flags(options: FlagOptions): string[] {
  return [
    ...base(options),
    ...proxy(options.proxyPort),
    ...(options.kind === 'headless-shell' ? headlessShell : []),
    ...(options.kind === 'headless' ? headless : []),
    ...(options.kind === 'headful' ? headful : []),
    ...(options.kiosk ? kiosk : []),
    ...(options.gpu ? gpu : software),
    ...(options.stealth ? stealth(options) : []),
    `--disable-features=${disabledFeatures.join(',')}`, // one list: a second --disable-features would replace the first
    ...(options.resume ? ['--restore-last-session'] : []), // without it Chromium forgets undated cookies, on which most logins rest
    ...(options.resume === 'tabs' ? [] : ['about:blank']), // exactly one page, and it needs no network; restored tabs need none beside them
  ];
}

const base = ({ userDataDir, viewport }: FlagOptions) => [
  '--remote-debugging-pipe', // CDP on file descriptors 3 and 4; a port would be open to every process of the machine
  `--user-data-dir=${userDataDir}`, // the profile, in the session's home and nowhere else
  `--window-size=${viewport.width},${viewport.height}`, // the window is the viewport the client asked for
  '--no-first-run', // no welcome page beside the client's page
  '--no-default-browser-check', // nobody to ask
  '--disable-background-networking', // no variations, no safe-browsing lists, no pings: traffic is the client's alone
  '--disable-component-update', // an update in the middle of a run changes behaviour, and is traffic nobody asked for
  '--component-updater=url-source=https://127.0.0.1:1/', // the flag above spares some components; a port Chromium refuses to use does not
  '--disable-sync', // no account to sync with
  '--allow-browser-signin=false', // nor one to sign the browser itself in with; pages sign in as ever
  '--gaia-url=https://127.0.0.1:1', // asked for its accounts at every start, whatever the flag above says; the same refused port
  '--disable-domain-reliability', // no reports to the browser's maker
  '--disable-client-side-phishing-detection', // a model download and a scan of every page
  '--disable-default-apps', // nothing installed that the client did not install
  '--disable-search-engine-choice-screen', // a dialog that would cover the first page
  '--disable-breakpad', // no crash handler process and no uploads; the log tail says what happened
  '--disable-crash-reporter', // the same for the headless shell, which reads this one
  '--disable-hang-monitor', // a page that thinks long is the client's business, a dialog about it nobody's
  '--disable-prompt-on-repost', // a reload must reload, not ask
  '--disable-popup-blocking', // window.open by a script is what automation does all day
  '--disable-backgrounding-occluded-windows', // several pages are driven at once, and only one can be in front
  '--disable-renderer-backgrounding', // the same, for the priority of their renderers
  '--disable-background-timer-throttling', // the same, for their timers
  '--disable-ipc-flooding-protection', // a client may call pushState faster than a person would
  '--password-store=basic', // no keyring in the sandbox; asking for one blocks on a D-Bus that is not there
  '--use-mock-keychain', // the same question on macOS
  '--force-color-profile=srgb', // screenshots look the same on every machine
  '--export-tagged-pdf', // printed pages keep their structure for readers and agents
  '--hide-crash-restore-bubble', // after a crash the service restores; the bubble would cover the page
  '--noerrdialogs', // no dialog can be clicked away by a script
  '--log-level=2', // errors only, so that the last 200 lines are worth reading
];

const proxy = (port: number) => [
  `--proxy-server=http://127.0.0.1:${port}`, // the only way out of the network namespace is the session's gateway
  '--proxy-bypass-list=<-loopback>', // loopback too: Chromium would otherwise go around the proxy for localhost
  '--disable-quic', // UDP does not pass an HTTP proxy; trying costs time before falling back
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp', // WebRTC would offer addresses of a network that leads nowhere
  '--webrtc-ip-handling-policy=disable_non_proxied_udp', // the headless shell's spelling of the same
];

const headlessShell = [
  '--hide-scrollbars', // screenshots and screencast without them, as every headless client expects
  '--mute-audio', // there is no sound card to open
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4', // a mouse, though no device is attached
];

const extensions = [
  '--enable-unsafe-extension-debugging', // Extensions.loadUnpacked over the pipe: an extension loads into a browser that runs
];

const headless = [
  '--headless=new', // the full browser without a display: extensions, policies, everything but a window
  ...headlessShell,
  ...extensions,
];

const headful = [
  ...extensions,
  '--ozone-platform=x11', // the display is Xvnc; do not go looking for Wayland
  '--window-position=0,0', // no window manager: the window is where and as large as it says, which is the whole display
  '--mute-audio', // there is no sound card to open
];

const kiosk = [
  '--kiosk', // no tabs, no address bar: the page is the display
];

const software = [
  '--disable-gpu', // no GPU process probing for hardware that is not bound into the sandbox
];

const gpu = [
  '--enable-gpu', // the headless engines leave it off without being asked
  '--ignore-gpu-blocklist', // server cards are on it for reasons of desktops
  '--use-angle=gl-egl', // renders on /dev/dri/renderD* without a display
];

/**
 * What flags can remove of the signs that a program drives this browser; the choice of the full browser (launch.ts) removes more: the
 * headless shell has no plugins and no window.chrome. What remains, and no flag removes: WebGL names a software renderer,
 * fonts and codecs are the server's, the brand is Chromium and not the one most people have, the address is the
 * gateway's, and a client that enables the Runtime domain can be noticed by pages that look for it.
 */
const stealth = ({ kind, version }: FlagOptions) => [
  '--disable-blink-features=AutomationControlled', // navigator.webdriver is false, as in a browser nobody drives
  '--disable-infobars', // no "is being controlled by automated test software" bar, which also changes innerHeight
  '--lang=en-US', // navigator.languages has two entries, as a person's has
  ...(kind === 'headful' || version === undefined ? [] : [`--user-agent=${userAgent(version)}`]), // without the word Headless
];

/** What a windowed Chromium of this version calls itself: since 2023 only the major version differs. */
export function userAgent(version: string): string {
  const major = version.split('.')[0];
  return `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`;
}

const disabledFeatures = [
  'NetworkTimeServiceQuerying', // asks the browser's maker what time it is, at every start
  'Translate', // a bubble over pages in other languages, and a request to a translation service
  'OptimizationHints', // downloads hints about pages from the browser's maker
  'MediaRouter', // looks for cast devices on the network by multicast
  'DialMediaRouteProvider', // the same, by another protocol
  'InterestFeedContentSuggestions', // news on the new tab page
  'CertificateTransparencyComponentUpdater', // a component download that the flag above does not cover
  'AutofillServerCommunication', // sends the shape of forms to the browser's maker
  'HttpsUpgrades', // an http address that was asked for is the one to load
  'PaintHolding', // shows the previous page until the next paints; a screenshot right after goto must not
  'DestroyProfileOnBrowserClose', // a closed last window is not the end of the profile
  'GlobalMediaControls', // asks D-Bus for MPRIS, which is not there
  'SystemNotifications', // asks D-Bus for notifications, which are not there
];
