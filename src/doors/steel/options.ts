import { errors } from '../../errors.ts';
import type { CreateProxy } from '../../proxies/schema.ts';
import type { CreateSession } from '../../sessions/schema.ts';
import { proxyOf } from './proxy-schema.ts';
import type { CreateBody, ScrapeBody, SessionContext } from './schema.ts';

/** What a create of the other service asks for, in the words of this one. */
export interface Plan {
  /** The body of `POST /browsers`, before ids are looked up. */
  request: CreateSession;
  /** The session ends after this time, used or not. */
  timeoutMs: number;
  /** By id or name; without one, a profile is made. */
  profile?: { idOrName?: string; save: boolean };
  /** Every extension of the project, instead of those that the request names. */
  allExtensions: boolean;
  proxy?: CreateProxy;
  context?: SessionContext;
}

/** The other service's own default. */
const DEFAULT_MS = 300_000;

type Refusal = [field: string, asked: (body: CreateBody) => boolean, remedy?: string];

const on = (value: unknown) => value !== undefined && value !== null && value !== false;
const filled = (value: unknown) =>
  on(value) && (typeof value !== 'object' || Object.values(value as object).some(some));
const some = (value: unknown) => on(value) && !(Array.isArray(value) && value.length === 0);
const given = (value: unknown) => value !== undefined && value !== null;

/** Options that the other service has and this one has not. Each is refused when it asks for something, with what to do instead. */
const refusals: Refusal[] = [
  ['blockAds', ({ blockAds }) => on(blockAds), 'Upload a blocker (POST /extensions), and name it in extensionIds.'],
  [
    'concurrency',
    ({ concurrency }) => given(concurrency) && concurrency !== 1,
    'Each request makes one session: send it several times, or make a pool (POST /browser_pools).',
  ],
  [
    'credentials',
    ({ credentials }) => given(credentials),
    'An auth connection keeps a profile logged in (POST /auth/connections); name that profile in profileId.',
  ],
  [
    'debugConfig.interactive',
    ({ debugConfig }) => debugConfig?.interactive === false,
    'POST /browsers/{id}/live_view_links makes a link that only shows the browser.',
  ],
  ['debugConfig.systemCursor', ({ debugConfig }) => debugConfig?.systemCursor === false],
  [
    'deviceConfig.device',
    ({ deviceConfig }) => deviceConfig?.device === 'mobile',
    'Emulate a phone with your driver, such as the devices of Playwright.',
  ],
  ['experimentalFeatures', ({ experimentalFeatures }) => filled(experimentalFeatures)],
  [
    'isSelenium',
    ({ isSelenium }) => on(isSelenium),
    'Selenium creates its session with POST /session; see docs/from-selenium.md.',
  ],
  [
    'namespace',
    ({ namespace }) => given(namespace) && namespace !== 'default',
    'Projects keep things apart: send a key of another project, or the header X-Kernel-Project.',
  ],
  [
    'optimizeBandwidth',
    ({ optimizeBandwidth }) => filled(optimizeBandwidth),
    'Block requests with your driver, such as page.route() of Playwright.',
  ],
  ['region', ({ region }) => given(region), 'Sessions run on the nodes of this service; leave it out.'],
  [
    'solveCaptcha',
    ({ solveCaptcha }) => on(solveCaptcha),
    'A person can solve a captcha in the live view, at debugUrl.',
  ],
  [
    'stealthConfig.autoCaptchaSolving',
    ({ stealthConfig }) => on(stealthConfig?.autoCaptchaSolving),
    'A person can solve a captcha in the live view, at debugUrl.',
  ],
  [
    'stealthConfig.humanizeInteractions',
    ({ stealthConfig }) => on(stealthConfig?.humanizeInteractions),
    'POST /browsers/{id}/computer/move_mouse and the like move as a person does.',
  ],
  [
    'sessionContext.indexedDB',
    ({ sessionContext }) => filled(sessionContext?.indexedDB),
    'Use a profile (persistProfile, profileId), which keeps everything that a browser stores.',
  ],
  [
    'userAgent',
    ({ userAgent }) => given(userAgent),
    'Set it with your driver: Emulation.setUserAgentOverride, or userAgent of a new context in Playwright.',
  ],
];

export function planOf(body: CreateBody): Plan {
  for (const [field, asked, remedy] of refusals)
    if (asked(body)) throw errors.feature_not_available({ field, ...(remedy === undefined ? {} : { remedy }) });
  const { sessionId, dimensions, headless, timeout = DEFAULT_MS, stealthConfig, extensionIds = [] } = body;
  const seconds = Math.ceil(timeout / 1000);
  const allExtensions = extensionIds.includes('all_ext');
  const proxy = proxyOf(body);
  const profile = profileOf(body);
  const { sessionContext: context } = body;
  return {
    request: {
      ...(sessionId === undefined ? {} : { name: sessionId }),
      ...(dimensions ? { viewport: dimensions } : {}),
      ...(headless === undefined ? {} : { headless }),
      ...(stealthConfig ? { stealth: stealthConfig.skipFingerprintInjection !== true } : {}),
      ...(extensionIds.length > 0 && !allExtensions ? { extensions: extensionIds.map((id) => ({ id })) } : {}),
      timeout_seconds: seconds,
    },
    timeoutMs: seconds * 1000,
    allExtensions,
    ...(profile ? { profile } : {}),
    ...(proxy ? { proxy } : {}),
    ...(context ? { context } : {}),
  };
}

function profileOf({ profileId, persistProfile: save = false }: CreateBody): Plan['profile'] {
  if (profileId !== undefined) return { idOrName: profileId, save };
  return save ? { save } : undefined;
}

/** The same for requests that open one page. */
export function refuseOfAction({ region, useProxy, format = [] }: Pick<ScrapeBody, 'region' | 'useProxy' | 'format'>) {
  if (given(region))
    throw errors.feature_not_available({
      field: 'region',
      remedy: 'Sessions run on the nodes of this service; leave it out.',
    });
  if (on(useProxy))
    throw errors.feature_not_available({
      field: 'useProxy',
      remedy: 'Make a session with useProxy or proxyUrl (POST /v1/sessions), and drive it.',
    });
  const other = format.find((one) => one !== 'html');
  if (other !== undefined)
    throw errors.feature_not_available({
      field: `format ${other}`,
      remedy: 'Take html, and convert it with a library of yours.',
    });
}
