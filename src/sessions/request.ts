import { MOST_PIXELS } from '../chromium/display/viewport.ts';
import { errors } from '../errors.ts';
import { captureOnCreate } from '../telemetry/capture.ts';
import type { BrowserOptions } from './browsers.ts';
import { policyOf } from './policy.ts';
import { defaultTimeoutSeconds, switchesOf, type CreateSession, type UpdateSession } from './schema.ts';
import type { Shape } from './spares.ts';
import type { NewSession, SessionRow } from './store.ts';

/** What a request means for the browser and for the row, and which fields are refused. */

export const defaultViewport = { width: 1920, height: 1080 };

export const spareOptions = (shape: Shape): BrowserOptions => ({
  ...switchesOf({}),
  headless: shape === 'headless',
  viewport: defaultViewport,
  policy: undefined,
});

/** The kind of spare that fits; undefined for options that cannot be applied to a running browser. */
export function shapeOf(options: BrowserOptions): Shape | undefined {
  const { headless, policy, needsFullBrowser, resume } = options;
  const { headless: _, ...others } = switchesOf(options);
  if (Object.values(others).includes(true) || policy || resume || (headless && needsFullBrowser)) return undefined;
  return headless ? 'headless' : 'headful';
}

export function optionsOf(request: CreateSession): BrowserOptions {
  const { viewport = defaultViewport } = request;
  const switches = switchesOf(request);
  const { headless, gpu } = switches;
  if (gpu && headless) throw errors.invalid_input({ detail: 'gpu needs a display; leave out headless or gpu.' });
  refuseHeadlessKiosk(switches);
  refuseIdleForce(request.profile);
  refuseLargeDisplay({ headless, viewport });
  const { width, height, refresh_rate } = viewport as { width: number; height: number; refresh_rate?: number };
  const rate = refresh_rate === undefined ? {} : { refreshRate: refresh_rate };
  return { ...switches, viewport: { width, height, ...rate }, policy: policyOf(request) };
}

/** Fields that another field makes meaningless are refused, since a client that sends them expects an effect. */
export function refuseHeadlessKiosk({ headless, kiosk_mode }: { headless?: boolean; kiosk_mode?: boolean }) {
  if (headless && kiosk_mode)
    throw errors.invalid_input({
      detail:
        'kiosk_mode hides the bars of a window, and headless browsers have none; leave out headless or kiosk_mode.',
    });
}

/** A display is no larger than its pictures may be. Headless browsers have none. */
export function refuseLargeDisplay({ headless = false, viewport }: Pick<CreateSession, 'headless' | 'viewport'>) {
  if (headless || !viewport || viewport.width * viewport.height <= MOST_PIXELS) return;
  throw errors.invalid_input({
    detail: `viewport of a session with a display has at most ${MOST_PIXELS} pixels (4096 by 4096); send a smaller one, or headless: true.`,
  });
}

export function refuseIdleForce(profile: UpdateSession['profile']) {
  if (profile?.force && !profile.save_changes)
    throw errors.invalid_input({
      detail: 'profile.force is about saving; send profile.save_changes: true with it, or leave it out.',
    });
}

/** The headless shell keeps neither tabs nor undated cookies, so a session with a profile always runs the full browser. */
export const withProfile = (resume: 'cookies' | 'tabs') => ({ needsFullBrowser: true, resume });

/** The viewport of a session, as its row has it. */
export const viewportOf = ({ viewport_width: width, viewport_height: height, refresh_rate }: SessionRow) => ({
  width,
  height,
  ...(refresh_rate === null ? {} : { refreshRate: refresh_rate }),
});

/** The request that a session's row was created from, as far as it concerns the browser. */
export const requestOf = (row: SessionRow): CreateSession => ({
  ...switchesOf(row),
  ...(row.policy ? { engine_policy: row.policy } : {}),
});

export function rowFor(
  projectId: string,
  request: CreateSession,
  options: BrowserOptions,
): Omit<NewSession, 'id' | 'node_id' | 'proxy_id' | 'pool_id' | 'pool_version' | 'profile_id' | 'profile_saves'> {
  return {
    project_id: projectId,
    name: request.name ?? null,
    tags: request.tags ?? {},
    ...switchesOf(options),
    timeout_seconds: request.timeout_seconds ?? defaultTimeoutSeconds,
    viewport_width: options.viewport.width,
    viewport_height: options.viewport.height,
    refresh_rate: options.viewport.refreshRate ?? null,
    start_url: request.start_url ?? null,
    policy: options.policy ?? null,
    invocation_id: request.invocation_id ?? null,
    telemetry: [...captureOnCreate(request.telemetry)],
  };
}

/** The change that an update makes to a session's proxy; undefined for none. Null counts as left out, as it does for tags. */
export function proxyChange(
  row: SessionRow,
  { proxy_id: id, disable_default_proxy: disable }: UpdateSession,
): { id: string | null; defaultDisabled: boolean } | undefined {
  const given = id !== undefined && id !== null;
  if (!given && disable === undefined) return undefined;
  const refuse = (detail: string) => errors.invalid_input({ detail });
  if (disable !== undefined && given)
    throw refuse(
      'disable_default_proxy cannot stand together with proxy_id: a proxy that is named is never the default.',
    );
  if (disable === true && !row.stealth)
    throw refuse('disable_default_proxy is for sessions with stealth; no other has a default proxy.');
  return { id: given ? id || null : row.proxy_id, defaultDisabled: disable ?? row.default_proxy_disabled };
}

/** Refuses a telemetry configuration that contradicts itself, where it is stored for later sessions. */
export function refuseTelemetry(request: CreateSession['telemetry']): void {
  captureOnCreate(request);
}
