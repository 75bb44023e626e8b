import type { Viewport } from '../display/viewport.ts';

/**
 * Every Chromium flag the service passes, with its reason on the same line, so that it can be removed when the reason no longer applies.
 *
 * Never add --no-sandbox: Chromium's own sandbox protects the session's home from a hostile page, and bubblewrap
 * protects everything else from the session.
 */

export type BrowserKind = 'headless-shell' | 'headless' | 'headful';

/** Options of a browser that are on or off, named as in the API, so that they reach this file without a translation. */
export interface Switches {
  readonly stealth: boolean;
  readonly kiosk_mode: boolean;
  readonly gpu: boolean;
}

export interface FlagOptions extends Switches {
  readonly kind: BrowserKind;
  readonly viewport: Viewport;
  /** Whether a window manager places the windows of a headful browser. */
  readonly managed?: boolean;
  readonly userDataDir: string;
  /** The port of the session's egress gateway, seen from Chromium. */
  readonly proxyPort: number;
  /** Whether the browser reads the policy of its session, which takes a file system of its own. */
  readonly policies: boolean;
  /** The engine's version, for the user agent of a stealthy browser; undefined keeps the engine's own. */
  readonly version: string | undefined;
  /** The state restored from an earlier run with the profile: session cookies, or those and the open tabs. */
  readonly resume?: 'cookies' | 'tabs' | undefined;
}

/** The command line after the binary's path, including the page to open. */
export function flags(options: FlagOptions): string[] {
  return [
    ...base(options),
    ...(options.managed ? [] : window(options)),
    ...(options.kind === 'headful' && !options.policies ? [] : noAccounts),
    ...proxy(options.proxyPort),
    ...(options.kind === 'headless-shell' ? headlessShell : []),
    ...(options.kind === 'headless' ? headless : []),
    ...(options.kind === 'headful' ? headful : []),
    ...(options.kiosk_mode ? kiosk : []),
    ...(options.gpu ? gpu : software),
    ...(options.kind === 'headful' && !options.gpu ? softwareWebGl : []),
    ...(options.stealth ? stealth(options) : []),
    `--disable-features=${[...disabledFeatures, ...(options.stealth ? [] : forDrivers)].join(',')}`, // one list: a second --disable-features would replace the first
    `--enable-features=${enabledFeatures.join(',')}`, // one list, too
    ...(options.resume ? ['--restore-last-session'] : []), // without it Chromium drops session cookies, which most logins need
    ...(options.resume === 'tabs' ? [] : ['about:blank']), // exactly one page, and it needs no network; restored tabs need no extra page
  ];
}

const base = ({ userDataDir }: FlagOptions) => [
  '--remote-debugging-pipe', // CDP on file descriptors 3 and 4; a port would be open to every process of the machine
  `--user-data-dir=${userDataDir}`, // the profile, in the session's home and nowhere else
  '--no-first-run', // no welcome page beside the client's page
  '--no-default-browser-check', // there is no user to ask
  '--disable-background-networking', // no variations, no safe-browsing lists, no pings: only the client causes traffic
  '--disable-component-update', // an update during a run changes behaviour and causes traffic the client did not request
  '--component-updater=url-source=https://127.0.0.1:1/', // stops the components that the flag above misses: Chromium refuses this port
  '--disable-sync', // no account to sync with
  '--allow-browser-signin=false', // no account for the browser itself; signing in on pages still works
  '--disable-domain-reliability', // no reports to Google
  '--disable-client-side-phishing-detection', // a model download and a scan of every page
  '--disable-default-apps', // nothing installed that the client did not install
  '--disable-search-engine-choice-screen', // a dialog that would cover the first page
  '--disable-breakpad', // no crash handler process and no uploads; the log tail shows what happened
  '--disable-crash-reporter', // the same for the headless shell, which reads this flag
  '--disable-hang-monitor', // the client decides about a page that does not respond; no dialog
  '--disable-prompt-on-repost', // a reload must reload, not ask
  '--disable-back-forward-cache', // a page from that cache fires no load event: goBack and goForward of drivers would wait for it in vain
  '--allow-pre-commit-input', // a click or key right after a navigation reaches the page instead of being dropped
  '--disable-popup-blocking', // automation calls window.open from scripts
  '--disable-backgrounding-occluded-windows', // clients drive several pages at once, and only one can be in front
  '--disable-renderer-backgrounding', // the same, for the priority of their renderers
  '--disable-background-timer-throttling', // the same, for their timers
  '--disable-ipc-flooding-protection', // a client may call pushState faster than a person would
  '--password-store=basic', // no keyring in the sandbox; looking for one blocks on D-Bus, which is missing
  '--use-mock-keychain', // the same question on macOS
  '--force-color-profile=srgb', // screenshots look the same on every machine
  '--export-tagged-pdf', // printed pages keep their structure for readers and agents
  '--disable-auto-reload', // a failed page is only loaded again by the client, not every few seconds
  '--hide-crash-restore-bubble', // after a crash the service restores; the bubble would cover the page
  '--noerrdialogs', // no dialog can be clicked away by a script
  '--log-level=2', // errors only, so that the last 200 lines are useful
];

/** Left out where no policy can hide the bar over every page that names the flag (see `policyOf`). */
const noAccounts = [
  '--gaia-url=https://127.0.0.1:1', // Chromium asks it for accounts at every start although signing in is off; the same refused port
];

/** For every window, popups too. A window manager places them: those with tabs over the whole display, popups as the page asks. */
const window = ({ kind, viewport }: FlagOptions) => [
  `--window-size=${viewport.width},${viewport.height}`, // the window has the size of the requested viewport
  ...(kind === 'headless-shell' ? [] : ['--window-position=0,0']), // without a window manager it gets exactly this position: the whole display
  ...(kind === 'headless' ? [`--screen-info={${viewport.width}x${viewport.height}}`] : []), // the screen too: its default of 800x600 is smaller than the window
];

const proxy = (port: number) => [
  `--proxy-server=http://127.0.0.1:${port}`, // the only way out of the network namespace is the session's gateway
  '--proxy-bypass-list=<-loopback>', // loopback too: by default Chromium bypasses the proxy for localhost
  '--disable-quic', // UDP does not pass an HTTP proxy; trying QUIC first costs time
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp', // WebRTC would offer addresses of a network that leads nowhere
  '--webrtc-ip-handling-policy=disable_non_proxied_udp', // the same flag for the headless shell
];

const mouse = [
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4', // no engine finds one: Xvnc's pointer has no type
];

const headlessShell = [
  '--hide-scrollbars', // screenshots and screencast without them, as every headless client expects
  '--mute-audio', // there is no sound card to open
  ...mouse,
];

const extensions = [
  '--enable-unsafe-extension-debugging', // Extensions.loadUnpacked over the pipe: loads an extension into a running browser; --load-extension needs a restart
];

const headless = [
  '--headless=new', // the full browser without a display; on the headless platform without this flag, dialogs would wait for a person
  ...headlessShell,
  ...extensions,
];

const headful = [
  ...extensions,
  ...mouse,
  '--ozone-platform=x11', // the display is Xvnc, not Wayland
  '--mute-audio', // there is no sound card to open
];

/** Of headful browsers. `searchUrl` has `%s` in the place of the words; empty, Chromium searches where it always does. */
const headfulPolicy = (searchUrl: string) => ({
  CommandLineFlagSecurityWarningsEnabled: false, // no bar over every page that names --gaia-url; only a policy can switch it off
  ...(searchUrl !== '' && {
    DefaultSearchProviderEnabled: true, // the address bar searches for words with the operator's engine, as the one of headless live views does
    DefaultSearchProviderName: new URL(searchUrl.replaceAll('%s', '')).hostname, // the address bar shows it
    DefaultSearchProviderSearchURL: searchUrl.replaceAll('%s', '{searchTerms}'), // Chromium's own word for them
  }),
});

/** The languages that Chromium has dictionaries for. */
const dictionaries =
  'af bg ca cs cy da de el en-AU en-CA en-GB en-GB-oxendict en-US es es-419 es-AR es-ES es-MX es-US et fa fo fr he hi hr hu hy id it ko lt lv nb nl pl pt-BR pt-PT ro ru sh sk sl sq sr sv ta tg tr uk vi'.split(
    ' ',
  );

/** Requests to Google that no page or client causes. The headless shell sends none of them. */
const silence = {
  PasswordLeakDetectionEnabled: false, // asks whether a password leaked, at every login
  SearchSuggestEnabled: false, // sends each letter typed into the address bar to a search engine
  SpellcheckLanguageBlocklist: dictionaries, // downloads a dictionary at the first text field, also with SpellcheckEnabled off
};

/** A session's own policy is added to it, and wins. The headless shell has none. */
export const policyOf = (kind: BrowserKind, searchUrl = '') => ({
  ...(kind !== 'headless-shell' && silence),
  ...(kind !== 'headless-shell' && { BlockThirdPartyCookies: false }), // Debian's Chromium keeps cookies and storage from frames of other sites
  ...(kind === 'headful' && headfulPolicy(searchUrl)),
});

const kiosk = [
  '--kiosk', // no tabs, no address bar: the page is the display
];

const software = [
  '--disable-gpu', // no GPU process probing for hardware that is not bound into the sandbox
];

/** The headless engines choose it by themselves. */
const softwareWebGl = [
  '--use-angle=swiftshader', // with a window and without a card Chromium has no WebGL otherwise
  '--enable-unsafe-swiftshader', // the same: since 2025 the fallback needs this flag
];

const gpu = [
  '--enable-gpu', // off by default in the headless engines
  '--ignore-gpu-blocklist', // server cards are blocked for reasons that matter on desktops only
  '--use-angle=gl-egl', // renders on /dev/dri/renderD* without a display
];

/**
 * Flags that remove signs of automation. The choice of the full browser (launch.ts) removes more: the
 * headless shell has no plugins and no window.chrome. No flag removes these signs: WebGL names a software renderer,
 * fonts and codecs are the server's, the brand is Chromium and not a more common one, the address is the
 * gateway's, and pages can detect a client that enables the Runtime domain.
 */
const stealth = ({ kind, version }: FlagOptions) => [
  '--disable-blink-features=AutomationControlled', // navigator.webdriver is false, as in a browser without automation
  '--disable-infobars', // no "is being controlled by automated test software" bar, which also changes innerHeight
  '--lang=en-US', // navigator.languages has two entries, as in a desktop browser
  ...(kind === 'headful' || version === undefined ? [] : [`--user-agent=${userAgent(version)}`]), // without the word Headless
];

/** The user agent of a windowed Chromium of this version: since 2023 only the major version differs. */
export function userAgent(version: string): string {
  const major = version.split('.')[0];
  return `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`;
}

const disabledFeatures = [
  'NetworkTimeServiceQuerying', // asks Google for the time at every start
  'Translate', // a bubble over pages in other languages, and a request to a translation service
  'OptimizationHints', // downloads hints about pages from Google
  'MediaRouter', // looks for cast devices on the network by multicast
  'DialMediaRouteProvider', // the same, by another protocol
  'InterestFeedContentSuggestions', // news on the new tab page
  'CertificateTransparencyComponentUpdater', // a component download that the flag above does not cover
  'AutofillServerCommunication', // sends the structure of forms to Google
  'HttpsUpgrades', // a requested http address is loaded as it is
  'PaintHolding', // shows the previous page until the next one paints; a screenshot right after goto must not show it
  'DestroyProfileOnBrowserClose', // the profile stays open when the last window is closed
  'GlobalMediaControls', // asks for MPRIS on D-Bus, which is missing
  'SystemNotifications', // asks for notifications on D-Bus, which is missing
  'WebUIOmniboxPopup', // loads a page for the suggestions of the address bar at every start, in a separate renderer; the native list is enough
  'WebUIOmniboxAimPopup', // the same, for questions to a search engine; with both off a start takes half the CPU time
];

const enabledFeatures = [
  'CDPScreenshotNewSurface', // screenshots of several tabs of a window at once; without it Chromium may wait for ever for a frame of a hidden tab to be shown
];

/** Features that drivers disable in browsers that they launch. A page could detect that, so stealthy browsers keep them. */
const forDrivers = [
  'ThirdPartyStoragePartitioning', // a frame of another site shares its storage with that site's own pages, as test suites expect
  'AvoidUnnecessaryBeforeUnloadCheckSync', // beforeunload runs in the order that drivers wait for
  'BlockOriginHeaderModificationOnRedirect', // a client that intercepts may send a redirected request on with its headers
  'AcceptCHFrame', // a server's wish for client hints restarts the request, and interception sees it twice
];
