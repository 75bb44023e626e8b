import { errors } from '../errors.ts';
import { policyOf } from '../sessions/policy.ts';
import { refuseHeadlessKiosk, refuseLargeDisplay } from '../sessions/request.ts';
import { switchesOf, type CreateSession } from '../sessions/schema.ts';
import { captureOf, captureOnUpdate, inReply } from '../telemetry/capture.ts';
import { defaultLeaseSeconds, PoolConfig, type CreatePool, type UpdatePool } from './schema.ts';
import type { PoolRow } from './store.ts';

type Config = PoolRow['config'];

function pooledSwitches(config: Config) {
  const { gpu: _, ...pooled } = switchesOf(config);
  return pooled;
}

export const defaultConfig = {
  fill_rate_per_minute: 25,
  timeout_seconds: defaultLeaseSeconds,
  ...pooledSwitches({}),
  refresh_on_profile_update: false,
  reset_on_release: true,
} satisfies Config;

/** The configuration of a new pool, with the defaults. */
export function configOf(request: Omit<CreatePool, 'size' | 'name'>): Config {
  const refreshes = { refresh_on_profile_update: request.refresh_on_profile_update ?? request.profile !== undefined };
  return checked({ ...defaultConfig, ...tidy(request), ...refreshes, ...capturing(undefined, request.telemetry) });
}

/** A field left out keeps its value; an empty one clears it, where it can be cleared. */
export function mergeConfig(before: Config, request: Omit<UpdatePool, 'size' | 'name' | 'discard_all_idle'>): Config {
  const { telemetry, ...rest } = before;
  const merged: Config = { ...rest, ...tidy(request), ...capturing(telemetry, request.telemetry) };
  if (isEmpty(request.engine_policy) || isEmpty(request.chrome_policy)) delete merged.engine_policy;
  if (request.proxy_id === '') delete merged.proxy_id;
  if (request.start_url === '') delete merged.start_url;
  if (request.extensions?.length === 0) delete merged.extensions;
  if (request.profile?.id === '') {
    delete merged.profile;
    merged.refresh_on_profile_update = false;
  } else if (request.profile && request.refresh_on_profile_update === undefined) {
    const same = JSON.stringify(before.profile) === JSON.stringify(merged.profile);
    merged.refresh_on_profile_update = same ? (before.refresh_on_profile_update ?? false) : true;
  }
  return checked(merged);
}

/** The browser that a pool's configuration describes. Its start_url is opened when the browser is lent, not before. */
export function browserOf({ config, profile_id, extension_ids }: PoolRow): CreateSession {
  const { viewport, engine_policy, proxy_id, timeout_seconds } = config;
  const asked = {
    ...pooledSwitches(config),
    viewport,
    engine_policy,
    proxy_id,
    timeout_seconds,
    profile: profile_id ? { id: profile_id } : undefined,
    extensions: extension_ids?.length ? extension_ids.map((id) => ({ id })) : undefined,
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}

/** Whether both configurations make the same browsers. */
export function sameBrowser(a: Config, b: Config): boolean {
  const made = (config: Config) => JSON.stringify(browserOf({ config: { ...config, timeout_seconds: 0 } } as PoolRow));
  return made(a) === made(b);
}

/** How long filling the pool takes at its rate; the default for how long a client waits. */
export function fillSeconds({ config }: PoolRow): number {
  const rate = config.fill_rate_per_minute ?? defaultConfig.fill_rate_per_minute;
  return rate === 0 ? 60 : Math.ceil((100 / rate) * 60);
}

/** The fields of a pool only, with one name for the policy, and without save_changes: a pool's profile is never written. */
function tidy(request: Partial<CreatePool & UpdatePool>): Config {
  const known = Object.entries(request).filter(
    ([field, value]) => field in PoolConfig.properties && value !== undefined,
  );
  const tidied: Partial<CreatePool> = Object.fromEntries(known);
  if (tidied.proxy_id === '') delete tidied.proxy_id;
  const policy = policyOf(request);
  delete tidied.chrome_policy;
  delete tidied.engine_policy;
  delete tidied.telemetry;
  if (policy) tidied.engine_policy = policy;
  if (tidied.profile) {
    tidied.profile = { ...tidied.profile };
    delete tidied.profile.save_changes;
  }
  return tidied;
}

/** What the pool's leases capture, unless an acquire says otherwise; no field for nothing. Its idle browsers capture nothing. */
function capturing(before: Config['telemetry'], request: UpdatePool['telemetry']): Pick<Config, 'telemetry'> {
  const capture = captureOnUpdate(captureOf(before), request) ?? captureOf(before);
  return capture.size > 0 ? { telemetry: inReply(capture) } : {};
}

const isEmpty = (policy: object | undefined) => policy !== undefined && Object.keys(policy).length === 0;

function checked(config: Config): Config {
  refuseHeadlessKiosk(config);
  refuseLargeDisplay(config);
  if (config.refresh_on_profile_update && !config.profile) {
    throw errors.invalid_input({ detail: 'refresh_on_profile_update needs a profile; the pool has none.' });
  }
  return config;
}
