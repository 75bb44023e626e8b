import { WebDriverFault } from './fault.ts';

/**
 * `goog:chromeOptions` of a client. The browser is started by the service, so most of them come too late for it. Options that apply to a
 * session become options of the session, options of chromedriver are passed on, and the rest is refused, since a client that
 * sends them expects an effect.
 */

/** Options that chromedriver applies to a running browser. */
const PASSED_ON = new Set(['mobileEmulation', 'perfLoggingPrefs', 'windowTypes', 'enableExtensionTargets', 'w3c']);

const REMEDIES = new Map(
  Object.entries({
    binary: 'Sessions run the Chromium of their machine; leave it out.',
    debuggerAddress: 'The service connects the driver to its browser; leave it out.',
    extensions: 'Upload the extension (POST /extensions), and name it in corral:options.extensions.',
    prefs: 'Use corral:options.chrome_policy, or a profile (corral:options.profile).',
    localState: 'Use corral:options.chrome_policy.',
    detach: 'A session ends with DELETE /session/{id}, or by its timeout (corral:options.timeout_seconds).',
  }),
);

/** Flags about the machine and the first start, which the service takes care of: with or without them, a session is the same. */
const WITHOUT_EFFECT = new Set([
  'no-sandbox',
  'disable-setuid-sandbox',
  'disable-dev-shm-usage',
  'disable-gpu',
  'no-first-run',
  'no-default-browser-check',
  'disable-infobars',
  'start-maximized',
  'remote-debugging-port',
  'remote-debugging-pipe',
  'remote-allow-origins',
]);
/** Of the flags that chromedriver would start Chromium with, those that a session does not have anyway. */
const ABSENT = new Set(['enable-automation', 'enable-logging']);

const FLAG_REMEDIES = new Map(
  Object.entries({
    'proxy-server': 'Use corral:options.proxy_id.',
    'user-data-dir': 'Use corral:options.profile.',
    'profile-directory': 'Use corral:options.profile.',
    'load-extension': 'Use corral:options.extensions.',
    incognito: 'Each session begins with an empty profile; leave it out.',
    'user-agent': 'Send Network.setUserAgentOverride over CDP.',
    lang: 'Send Emulation.setLocaleOverride over CDP.',
    'ignore-certificate-errors': 'Use the capability acceptInsecureCerts.',
  }),
);

export function chromeOptions(given: Record<string, unknown>): {
  session: Record<string, unknown>;
  passedOn: Record<string, unknown>;
} {
  const session: Record<string, unknown> = {};
  const passedOn: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (PASSED_ON.has(name)) passedOn[name] = value;
    else if (name === 'args') for (const arg of texts(name, value)) Object.assign(session, meaningOf(arg));
    else if (name === 'excludeSwitches') refuseOthers(texts(name, value));
    else if (name === 'useAutomationExtension' && value === false) continue;
    else if (!isEmpty(value))
      throw invalid(
        `'goog:chromeOptions.${name.slice(0, 100)}' is not taken here. ${REMEDIES.get(name) ?? 'Leave it out.'}`,
      );
  }
  return { session, passedOn };
}

/** The letters of a flag that are read. No flag that has an effect is longer, and a flag may have megabytes. */
const MOST_LETTERS = 1000;

/** What a flag means for a session. */
function meaningOf(arg: string): Record<string, unknown> {
  const [, name = '', value = ''] = /^-{0,2}([\w-]+)(?:=(.*))?$/s.exec(arg.slice(0, MOST_LETTERS)) ?? [];
  if (WITHOUT_EFFECT.has(name)) return {};
  if (name === 'headless') return { headless: true };
  if (name === 'kiosk') return { kiosk_mode: true };
  const [, width, height] = (name === 'window-size' && /^(\d{1,5})[,x](\d{1,5})$/.exec(value)) || [];
  if (width !== undefined) return { viewport: { width: Number(width), height: Number(height) } };
  const remedy = FLAG_REMEDIES.get(name) ?? 'The browser is started by the service; leave it out.';
  throw invalid(`'goog:chromeOptions.args' has ${JSON.stringify(arg.slice(0, 100))}, which is not taken. ${remedy}`);
}

function refuseOthers(switches: string[]): void {
  const other = switches.find((name) => !ABSENT.has(name.slice(0, MOST_LETTERS).replace(/^-+/, '')));
  if (other !== undefined)
    throw invalid(
      `'goog:chromeOptions.excludeSwitches' has ${JSON.stringify(other.slice(0, 100))}, which is not taken. The browser is started by the service; leave it out.`,
    );
}

function texts(name: string, value: unknown): string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw invalid(`'goog:chromeOptions.${name}' must be a list of strings.`);
}

/** Some clients send every option, most of them empty. */
const isEmpty = (value: unknown) =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);

const invalid = (message: string) => new WebDriverFault('invalid argument', message);
