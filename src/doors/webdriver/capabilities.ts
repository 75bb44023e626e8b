import { chromeOptions } from './chrome-options.ts';
import { WebDriverFault } from './fault.ts';

/** The requested capabilities of New Session, by the part that fulfils them. */
export interface Wanted {
  /** The key, where the client sends it here instead of in a header. */
  apiKey: string | undefined;
  /** The body of `POST /browsers`, which is still to be validated. */
  options: Record<string, unknown>;
  /** For chromedriver. */
  driver: Record<string, unknown>;
  acceptInsecureCerts: boolean;
  /** The client wants an address for WebDriver BiDi. */
  bidi: boolean;
}

type Caps = Record<string, unknown>;

const MOST_MATCHES = 50;
/** Names of one object. Each entry of `firstMatch` is joined with `alwaysMatch`: fifty times 30,000 names took minutes. */
const MOST_NAMES = 100;
const BROWSERS = ['chrome', 'chromium', 'chrome-headless-shell'];
const PLATFORMS = ['linux', 'any'];

/** Reads the body of New Session by the rules of the standard: the first possible entry of `firstMatch` is used. */
export function readCapabilities(body: unknown): Wanted {
  const { capabilities } = isObject(body) ? body : {};
  if (!isObject(capabilities))
    throw invalid("'capabilities' is missing. Clients that send desiredCapabilities only are older than the standard.");
  const { alwaysMatch = {}, firstMatch = [{}] } = capabilities;
  if (!isObject(alwaysMatch)) throw invalid("'capabilities.alwaysMatch' must be an object.");
  refuseManyNames('capabilities.alwaysMatch', alwaysMatch);
  if (!Array.isArray(firstMatch) || firstMatch.length === 0 || firstMatch.length > MOST_MATCHES)
    throw invalid(`'capabilities.firstMatch' must be a list of 1 to ${MOST_MATCHES} objects.`);
  const choices = firstMatch.map((first: unknown) => merged(alwaysMatch, first));
  const reasons: string[] = [];
  for (const choice of choices) {
    const reason = unfit(choice);
    if (reason === undefined) return sorted(choice);
    reasons.push(reason);
  }
  throw new WebDriverFault('session not created', [...new Set(reasons)].join(' '));
}

function merged(always: Caps, first: unknown): Caps {
  if (!isObject(first)) throw invalid("'capabilities.firstMatch' must be a list of objects.");
  refuseManyNames('capabilities.firstMatch', first);
  const twice = Object.keys(first).find((name) => Object.hasOwn(always, name));
  if (twice !== undefined) throw invalid(`'${twice.slice(0, 100)}' is in alwaysMatch and in firstMatch.`);
  const all = Object.entries({ ...always, ...first });
  return Object.fromEntries(all.filter(([, value]) => value !== null)); // null means "left out"
}

function refuseManyNames(field: string, given: Caps): void {
  if (Object.keys(given).length > MOST_NAMES)
    throw invalid(`'${field}' has more than ${MOST_NAMES} names. Leave some of them out.`);
}

/** Whether a text is one of some short words, in any case. */
const isAmong = (words: string[], text: string) => words.includes(text.slice(0, 100).toLowerCase());

/** The reason why this service cannot provide such a browser; undefined if it can. */
function unfit({ browserName = 'chrome', platformName = 'linux', browserVersion = '' }: Caps): string | undefined {
  for (const [name, value] of Object.entries({ browserName, platformName, browserVersion }))
    if (typeof value !== 'string') throw invalid(`'${name}' must be a string.`);
  if (!isAmong(BROWSERS, String(browserName)))
    return `The browser here is chrome, not ${JSON.stringify(String(browserName).slice(0, 100))} (browserName).`;
  if (!isAmong(PLATFORMS, String(platformName)))
    return `The platform here is linux, not ${JSON.stringify(String(platformName).slice(0, 100))} (platformName).`;
  if (!['', 'stable'].includes(String(browserVersion)))
    return 'browserVersion cannot be chosen: sessions run the Chromium of their machine. Leave it out.';
  return undefined;
}

function sorted(all: Caps): Wanted {
  const { browserName: _, platformName: __, browserVersion: ___, ...caps } = all;
  const { 'corral:options': ours = {}, 'goog:chromeOptions': chrome = {}, webSocketUrl = false, ...others } = caps;
  const { acceptInsecureCerts = false, proxy = {}, ...driver } = others;
  if (!isObject(ours)) throw invalid("'corral:options' must be an object.");
  if (!isObject(chrome)) throw invalid("'goog:chromeOptions' must be an object.");
  refuseManyNames('corral:options', ours);
  refuseManyNames('goog:chromeOptions', chrome);
  if (typeof webSocketUrl !== 'boolean') throw invalid("'webSocketUrl' must be true or false.");
  if (typeof acceptInsecureCerts !== 'boolean') throw invalid("'acceptInsecureCerts' must be true or false.");
  if (!isObject(proxy) || Object.keys(proxy).length > 0)
    throw invalid(
      "'proxy' is not taken here. Make a proxy with POST /proxies, and name it in corral:options.proxy_id.",
    );
  const { apiKey, ...options } = ours;
  if (apiKey !== undefined && typeof apiKey !== 'string') throw invalid("'corral:options.apiKey' must be a string.");
  const { session, passedOn } = chromeOptions(chrome);
  for (const [name, value] of Object.entries(session)) {
    if (Object.hasOwn(options, name) && JSON.stringify(options[name]) !== JSON.stringify(value))
      throw invalid(`'corral:options.${name}' contradicts 'goog:chromeOptions.args'. Leave one of them out.`);
  }
  return {
    apiKey,
    options: { ...session, ...options },
    driver: { ...driver, 'goog:chromeOptions': passedOn },
    acceptInsecureCerts,
    bidi: webSocketUrl,
  };
}

const invalid = (message: string) => new WebDriverFault('invalid argument', message);

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
