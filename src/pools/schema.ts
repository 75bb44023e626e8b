import { Type, type Static } from 'typebox';
import { named, nullable, Paging, Search, SlugName, Timestamp } from '../api/schema.ts';
import {
  ExtensionSelector,
  idleBounds,
  Policy,
  Tags,
  Telemetry,
  TelemetryRequest,
  Viewport,
} from '../sessions/schema.ts';

/** The name of a pool, under the same rule as a session's name. */
const PoolName = Type.String({ pattern: '^[a-zA-Z0-9._-]{1,255}$', description: 'Unique in the project.' });

/** An empty id clears the profile in an update. `save_changes` is accepted and ignored: pooled browsers never write back. */
const PoolProfile = named(
  'BrowserPoolProfile',
  Type.Object(
    {
      id: Type.Optional(Type.String({ maxLength: 255 })),
      name: Type.Optional(SlugName),
      save_changes: Type.Optional(Type.Boolean({ description: 'Ignored: a pool’s profile is read-only.' })),
    },
    {
      oneOf: [
        { type: 'object', required: ['id'] },
        { type: 'object', required: ['name'] },
      ],
    },
  ),
);

const size = Type.Integer({
  minimum: 1,
  maximum: 10_000,
  description: 'The number of its browsers, including leased ones.',
});
const fillRate = {
  minimum: 0,
  maximum: 10_000,
  description: 'The share of the pool that is filled in the background each minute, in percent; 0 for none.',
};
export const defaultLeaseSeconds = 600;
const timeout = {
  ...idleBounds,
  description: 'The time without a client or a request after which a lease ends.',
};
const resetOnRelease = { description: 'false keeps the state of the browser from the last lease. Corral extension.' };

/** The switches of a session that a pool has, too. */
const switches = (options?: { default: false }) => ({
  stealth: Type.Optional(Type.Boolean(options)),
  headless: Type.Optional(Type.Boolean(options)),
  kiosk_mode: Type.Optional(Type.Boolean(options)),
});

const common = {
  profile: Type.Optional(PoolProfile),
  extensions: Type.Optional(Type.Array(ExtensionSelector, { maxItems: 20 })),
  proxy_id: Type.Optional(Type.String({ maxLength: 255 })),
  viewport: Type.Optional(Viewport),
  chrome_policy: Type.Optional(Policy),
  engine_policy: Type.Optional(Policy),
  start_url: Type.Optional(Type.String({ maxLength: 2048 })),
};

export const CreatePool = named(
  'BrowserPoolCreateRequest',
  Type.Object({
    size,
    name: Type.Optional(PoolName),
    fill_rate_per_minute: Type.Optional(Type.Integer({ ...fillRate, default: 25 })),
    timeout_seconds: Type.Optional(Type.Integer({ ...timeout, default: defaultLeaseSeconds })),
    ...switches({ default: false }),
    refresh_on_profile_update: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Replace the idle browsers when the profile is saved. true by default if the pool has a profile.',
      }),
    ),
    reset_on_release: Type.Optional(Type.Boolean({ default: true, ...resetOnRelease })),
    telemetry: Type.Optional(nullable(TelemetryRequest)),
    ...common,
  }),
);

/** Settings without their defaults: as they are changed, and as they are answered. */
const settings = {
  fill_rate_per_minute: Type.Optional(Type.Integer(fillRate)),
  timeout_seconds: Type.Optional(Type.Integer(timeout)),
  ...switches(),
  refresh_on_profile_update: Type.Optional(Type.Boolean()),
  reset_on_release: Type.Optional(Type.Boolean(resetOnRelease)),
};

export const UpdatePool = named(
  'BrowserPoolUpdateRequest',
  Type.Object({
    size: Type.Optional(size),
    // The empty string keeps the name, as clients of this interface expect.
    name: Type.Optional(
      Type.Unsafe<string>({
        anyOf: [PoolName, { type: 'string', maxLength: 0 }],
      }),
    ),
    ...settings,
    telemetry: Type.Optional(nullable(TelemetryRequest)),
    discard_all_idle: Type.Optional(
      Type.Boolean({ default: false, description: 'Replace the idle browsers at once.' }),
    ),
    ...common,
  }),
);

export const PoolConfig = named(
  'BrowserPoolConfig',
  Type.Object({
    size,
    name: Type.Optional(PoolName),
    ...settings,
    telemetry: Type.Optional(nullable(Telemetry)),
    ...common,
  }),
);

export const Pool = named(
  'BrowserPool',
  Type.Object({
    id: Type.String(),
    name: Type.Optional(Type.String()),
    available_count: Type.Integer({ description: 'Idle browsers.' }),
    acquired_count: Type.Integer({ description: 'Browsers that are leased.' }),
    warming_count: Type.Integer({ description: 'Browsers that are being started or cleaned. Corral extension.' }),
    waiting_count: Type.Integer({ description: 'Clients in the queue. Corral extension.' }),
    last_error: Type.Optional(
      Type.Object(
        { message: Type.String(), at: Timestamp },
        { description: 'The last failed launch; removed when a launch succeeds. Corral extension.' },
      ),
    ),
    created_at: Timestamp,
    browser_pool_config: PoolConfig,
    profile_id: Type.Optional(Type.String()),
    extension_ids: Type.Array(Type.String()),
  }),
);

export const DeletePool = named(
  'BrowserPoolDeleteRequest',
  Type.Object({
    force: Type.Optional(
      Type.Boolean({ default: false, description: 'Also if browsers are leased; their leases end.' }),
    ),
  }),
);

export const Acquire = named(
  'BrowserPoolAcquireRequest',
  Type.Object({
    acquire_timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: 'The total time to wait; each poll is answered within 55 s.',
      }),
    ),
    name: Type.Optional(SlugName),
    tags: Type.Optional(Tags),
    start_url: Type.Optional(Type.String({ maxLength: 2048 })),
    telemetry: Type.Optional(nullable(TelemetryRequest)),
  }),
);

export const Release = named(
  'BrowserPoolReleaseRequest',
  Type.Object({
    session_id: Type.String({ maxLength: 255 }),
    reuse: Type.Optional(
      Type.Boolean({ default: true, description: 'false destroys the browser instead of putting a clean one back.' }),
    ),
  }),
);

export const PoolList = Type.Object({ ...Paging, ...Search });

export type CreatePool = Static<typeof CreatePool>;
export type UpdatePool = Static<typeof UpdatePool>;
export type PoolConfig = Static<typeof PoolConfig>;
export type Pool = Static<typeof Pool>;
export type Acquire = Static<typeof Acquire>;
export type PoolList = Static<typeof PoolList>;
