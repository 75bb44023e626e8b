import { Type, type Static } from 'typebox';
import { named, nullable, oneOf, Paging, SlugName, Timestamp } from '../api/schema.ts';
import { ExtensionSelector } from '../extensions/schema.ts';
import { ProfileSelector, SessionProfile } from '../profiles/schema.ts';
import { Telemetry, TelemetryRequest } from '../telemetry/schema.ts';
import { endings, sessionLife, type Ending } from './state.ts';

export { ExtensionSelector, Telemetry, TelemetryRequest };

/** The longest time a session may idle. A token ends with its session in any case, and every answer carries fresh ones. */
export const lifeSeconds = 72 * 60 * 60;

/** The bounds of `timeout_seconds`, for sessions, leases and doors. */
export const idleBounds = { minimum: 10, maximum: lifeSeconds };
export const defaultTimeoutSeconds = 60;

export const Tags = named(
  'Tags',
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    maxProperties: 50,
    propertyNames: { type: 'string', minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9 _.:/=+@-]+$' },
    additionalProperties: { type: 'string', minLength: 0, maxLength: 256, pattern: '^[A-Za-z0-9 _.:/=+@-]*$' },
    description: 'Up to 50 pairs to find sessions by.',
  }),
);

export const Viewport = named(
  'BrowserViewport',
  Type.Object({
    width: Type.Integer({
      minimum: 1,
      maximum: 8192,
      description: 'Width times height is at most 16777216 (4096 by 4096), unless the session is headless.',
    }),
    height: Type.Integer({ minimum: 1, maximum: 8192 }),
    refresh_rate: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 240, description: 'The maximum frame rate of the live view.' }),
    ),
  }),
);

const ViewportUpdate = named(
  'BrowserViewportUpdate',
  Type.Object({
    ...Viewport.properties,
    force: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Change it even if the live view has viewers or the session is recorded. A recording continues as another replay.',
      }),
    ),
  }),
);

export const Policy = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
  description: 'Chromium enterprise policies for this session alone.',
});

/**
 * Options of a browser that are on or off. Rows, answers, pools and the engine have them under the same names; `chromium/browser/flags.ts`
 * says what each does.
 */
const switches = {
  headless: Type.Boolean({
    description: 'Without a display: starts faster and takes less memory. false when left out.',
  }),
  stealth: Type.Boolean({ description: 'Without the signs of automation that flags can remove; see docs/stealth.md.' }),
  gpu: Type.Boolean(),
  kiosk_mode: Type.Boolean({ description: 'Without tabs and address bar.' }),
};

export type Switches = Record<keyof typeof switches, boolean>;

/** The switches of a request, a row or a configuration. A missing switch is off. */
export const switchesOf = (source: Partial<Switches>) =>
  Object.fromEntries(Object.keys(switches).map((name) => [name, source[name as keyof Switches] ?? false])) as Switches;

export const CreateSession = named(
  'BrowserRequest',
  Type.Object({
    name: Type.Optional({
      ...SlugName,
      description: 'Unique among the active sessions of the project.',
    } as typeof SlugName),
    tags: Type.Optional(Tags),
    headless: Type.Optional(switches.headless),
    stealth: Type.Optional(switches.stealth),
    gpu: Type.Optional(switches.gpu),
    timeout_seconds: Type.Optional(
      Type.Integer({
        ...idleBounds,
        description: `Deleted after this long without a client or a request; ${defaultTimeoutSeconds} when left out.`,
      }),
    ),
    viewport: Type.Optional(Viewport),
    kiosk_mode: Type.Optional(switches.kiosk_mode),
    start_url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'Opened when the session starts. The start does not wait until it is loaded.',
      }),
    ),
    engine_policy: Type.Optional(Policy),
    chrome_policy: Type.Optional({ ...Policy, description: 'Another name of engine_policy.' } as typeof Policy),
    profile: Type.Optional(ProfileSelector),
    extensions: Type.Optional(Type.Array(ExtensionSelector, { maxItems: 20 })),
    proxy_id: Type.Optional(Type.String({ maxLength: 255 })),
    telemetry: Type.Optional(nullable(TelemetryRequest)),
    invocation_id: Type.Optional(Type.String({ maxLength: 255 })),
    replay_buffer_seconds: Type.Optional(
      Type.Integer({
        minimum: 5,
        maximum: 300,
        description:
          'Keeps a video of the last so many seconds (and 32 MiB at most), for POST /browsers/{id}/replays with last_seconds.',
      }),
    ),
  }),
);

export const UpdateSession = named(
  'BrowserUpdateRequest',
  Type.Object({
    // The empty string clears the name, so the minimum length of a name does not apply.
    name: Type.Optional(
      Type.Unsafe<string | null>({
        anyOf: [SlugName, { type: 'string', maxLength: 0 }, { type: 'null' }],
        description: 'Left out: kept. Empty or null: cleared.',
      }),
    ),
    tags: Type.Optional(nullable(Tags)),
    viewport: Type.Optional(ViewportUpdate),
    proxy_id: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
    disable_default_proxy: Type.Optional(Type.Boolean()),
    profile: Type.Optional(ProfileSelector),
    telemetry: Type.Optional(nullable(TelemetryRequest)),
  }),
);

export const Session = named(
  'Browser',
  Type.Object({
    session_id: Type.String(),
    created_at: Timestamp,
    cdp_ws_url: Type.String({ description: 'For Playwright, Puppeteer and raw CDP; several clients at a time.' }),
    webdriver_ws_url: Type.String({ description: 'For WebDriver BiDi.' }),
    browser_live_view_url: Type.Optional(
      Type.String({ description: 'A page that shows the browser; with readOnly=true without input.' }),
    ),
    base_url: Type.Optional(Type.String({ description: 'Answers /json/version and /json/list, as Chromium does.' })),
    headless: Type.Boolean(),
    stealth: Type.Boolean(),
    gpu: Type.Optional(Type.Boolean()),
    kiosk_mode: Type.Optional(Type.Boolean()),
    name: Type.Optional(Type.String()),
    timeout_seconds: Type.Integer(),
    viewport: Type.Optional(Viewport),
    start_url: Type.Optional(Type.String()),
    engine_policy: Type.Optional(Policy),
    chrome_policy: Type.Optional(Policy),
    tags: Type.Optional(Tags),
    profile: Type.Optional(SessionProfile),
    profile_save_changes: Type.Optional(
      Type.Boolean({ description: 'The profile is written back when the session ends.' }),
    ),
    proxy_id: Type.Optional(Type.String()),
    pool: Type.Optional(
      named('BrowserPoolRef', Type.Object({ id: Type.String(), name: Type.Optional(Type.String()) })),
    ),
    telemetry: Type.Optional(nullable(Telemetry)),
    usage: Type.Optional(
      named(
        'BrowserUsage',
        Type.Object({ uptime_ms: Type.Integer({ description: 'The time in which it was not in standby.' }) }),
      ),
    ),
    deleted_at: Type.Optional(Timestamp),
    ended_reason: Type.Optional(
      oneOf(Object.keys(endings) as Ending[], { description: 'The reason of its end; see docs/lifecycles.md.' }),
    ),
    ended_detail: Type.Optional(
      Type.String({ description: 'Details about its end, if there are any. Corral extension.' }),
    ),
    state: Type.Optional(
      oneOf([...sessionLife.stateNames, 'standby'], {
        description:
          'Its state, see docs/lifecycles.md; `standby` is a live session that is frozen until it is used. Corral extension.',
      }),
    ),
    node_id: Type.Optional(Type.String({ description: 'The node that runs it, or ran it. Corral extension.' })),
    clients: Type.Optional(
      named(
        'BrowserClients',
        Type.Object(
          {
            cdp: Type.Integer(),
            webdriver: Type.Integer(),
            live_view: Type.Integer(),
            terminal: Type.Integer({ description: 'Terminals of processes.' }),
            requests: Type.Integer({ description: 'HTTP requests that use the session now.' }),
          },
          {
            description:
              'Its current use. Only in answers of the node that runs it, while it is live: lists of other nodes leave it out, like ends_at and active_page. Corral extension.',
          },
        ),
      ),
    ),
    ends_at: Type.Optional({
      ...Timestamp,
      description:
        'When it ends by its timeout, unless it is used before. Left out while it is used. Corral extension.',
    } as typeof Timestamp),
    active_page: Type.Optional(
      named(
        'BrowserActivePage',
        Type.Object(
          { url: Type.String(), title: Type.String(), seen_at: Timestamp },
          {
            description:
              'The active page. GET of one session asks the browser; a list has the last known page (also during standby). Corral extension.',
          },
        ),
      ),
    ),
    memory_bytes: Type.Optional(
      Type.Integer({
        description: 'The resource usage of its processes; only in GET of one session. Corral extension.',
      }),
    ),
  }),
);

export const SessionList = Type.Object({
  status: oneOf(['active', 'deleted', 'all'], { default: 'active' }),
  include_deleted: Type.Boolean({ default: false, deprecated: true, description: 'The same as `status=all`.' }),
  ...Paging,
  query: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        'Case-insensitive part of the name of the session, its pool or its profile, or the whole id of the session, its profile or its proxy.',
    }),
  ),
  tags: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'tags[team]=a&tags[env]=b: sessions that have all of these.',
    }),
  ),
});

export const CreateLiveViewLink = Type.Object({
  read_only: Type.Boolean({
    default: true,
    description:
      'The link shows the browser and accepts no input. This is part of the signed link and cannot be removed.',
  }),
  expires_in_seconds: Type.Integer({
    minimum: 1,
    maximum: lifeSeconds,
    default: lifeSeconds,
    description: 'The link also ends with the session, its lease or the key that created it.',
  }),
});

export const LiveViewLink = named(
  'BrowserLiveViewLink',
  Type.Object({ url: Type.String(), read_only: Type.Boolean(), expires_at: Timestamp }),
);

export type CreateLiveViewLink = Static<typeof CreateLiveViewLink>;
export type LiveViewLink = Static<typeof LiveViewLink>;
export type CreateSession = Static<typeof CreateSession>;
export type UpdateSession = Static<typeof UpdateSession>;
export type Session = Static<typeof Session>;
export type SessionList = Static<typeof SessionList>;
