import { Type, type Static, type TProperties, type TSchema } from 'typebox';
import { named, oneOf } from '../api/schema.ts';
import { telemetryCategories, type TelemetryCategory } from '../lib/telemetry.ts';

const { Integer, Number: Decimal, Boolean, String: Text, Optional, Object: Shape, Array: List } = Type;

// Configuration

const Category = named('BrowserTelemetryCategoryConfig', Shape({ enabled: Optional(Boolean()) }));

/** A category that does not exist is refused rather than ignored: a client that captures nothing by a typing error would notice too late. */
const Categories = named(
  'BrowserTelemetryCategoriesConfig',
  Type.Unsafe<{ [C in TelemetryCategory]?: { enabled?: boolean } }>(
    Shape(Object.fromEntries(telemetryCategories.map((name) => [name, Optional(Category)])), {
      additionalProperties: false,
      description: 'Left out categories follow the rules of docs/telemetry.md.',
    }),
  ),
);

export const TelemetryRequest = named(
  'BrowserTelemetryRequestConfig',
  Shape(
    {
      enabled: Optional(
        Boolean({
          description:
            'true captures control, connection, system and captcha, and what `browser` adds. false captures nothing.',
        }),
      ),
      browser: Optional(Categories),
    },
    { additionalProperties: false },
  ),
);

export const Telemetry = named('BrowserTelemetryConfig', Shape({ browser: Optional(Categories) }));

// Events

const Source = named(
  'BrowserEventSource',
  Shape({
    kind: oneOf(['cdp', 'kernel_api', 'extension', 'local_process']),
    event: Optional(Text()),
    metadata: Optional(Type.Record(Text(), Text())),
  }),
);

const TargetType = named(
  'BrowserTargetType',
  oneOf(['page', 'background_page', 'service_worker', 'shared_worker', 'other']),
);

const optional = (fields: Record<string, TSchema>) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Optional(schema)]));

/** Where in the browser it happened. `session_id` is the CDP session, not the browser session. */
const context = optional({
  session_id: Text(),
  target_id: Text(),
  target_type: TargetType,
  frame_id: Text(),
  loader_id: Text(),
  url: Text(),
  nav_seq: Integer(),
});

/** In the shape of CDP. A reference that refers to itself cannot be compiled, so the parents are written out three deep. */
const callStack = (parents: number): TSchema =>
  Shape({
    description: Optional(Text()),
    callFrames: List(
      Shape({
        functionName: Text(),
        scriptId: Text(),
        url: Text(),
        lineNumber: Integer(),
        columnNumber: Integer(),
      }),
    ),
    parent: Optional(parents > 0 ? callStack(parents - 1) : Shape({}, { additionalProperties: true })),
  });
const CallStack = named('BrowserCallStack', callStack(3));

const Headers = named('BrowserHttpHeaders', Type.Record(Text(), Type.Unknown()));

function event(name: string, type: string, category: string, data?: TProperties) {
  return named(
    `Browser${name}Event`,
    Shape({
      ts: Integer({ description: 'Unix microseconds.' }),
      type: Type.Literal(type),
      category: Type.Literal(category),
      source: Source,
      ...(data ? { data: Optional(Shape(data)) } : {}),
      truncated: Optional(
        Boolean({
          description:
            '`data` was left out: the event had more than 1,000,000 bytes, or the session has more secrets than can be hidden.',
        }),
      ),
    }),
  );
}

const found = (name: string, type: string, category: string, data: Record<string, TSchema> = {}) =>
  event(name, type, category, { ...context, ...optional(data) });

/** The fields are those of one event each, in the order of docs/telemetry.md. */
const Events = [
  found('ConsoleLog', 'console_log', 'console', {
    level: Text(),
    text: Text(),
    args: List(Text()),
    stack_trace: CallStack,
  }),
  event('ConsoleError', 'console_error', 'console', {
    ...context,
    text: Text(),
    ...optional({
      level: Text(),
      args: List(Text()),
      line: Integer(),
      column: Integer(),
      source_url: Text(),
      stack_trace: CallStack,
    }),
  }),
  found('NetworkRequest', 'network_request', 'network', {
    request_id: Text(),
    method: Text(),
    document_url: Text(),
    headers: Headers,
    resource_type: Text(),
    initiator_type: Text(),
    post_data: Text(),
    is_redirect: Boolean(),
    redirect_url: Text(),
  }),
  found('NetworkResponse', 'network_response', 'network', {
    request_id: Text(),
    method: Text(),
    status: Integer(),
    status_text: Text(),
    headers: Headers,
    mime_type: Text(),
    resource_type: Text(),
    body: Text({ description: 'Text only, cut at 8 KB (JSON, XML, forms) or 4 KB (other text).' }),
  }),
  found('NetworkLoadingFailed', 'network_loading_failed', 'network', {
    request_id: Text(),
    error_text: Text(),
    canceled: Boolean(),
    resource_type: Text(),
  }),
  found('NetworkIdle', 'network_idle', 'network'),
  event(
    'PageNavigation',
    'page_navigation',
    'page',
    optional({
      url: Text(),
      frame_id: Text(),
      parent_frame_id: Text(),
      loader_id: Text(),
      session_id: Text(),
      target_id: Text(),
      target_type: TargetType,
    }),
  ),
  found('PageDomContentLoaded', 'page_dom_content_loaded', 'page', { cdp_timestamp: Decimal() }),
  found('PageLoad', 'page_load', 'page', { cdp_timestamp: Decimal() }),
  event(
    'PageTabOpened',
    'page_tab_opened',
    'page',
    optional({ target_id: Text(), target_type: TargetType, url: Text(), title: Text(), opener_id: Text() }),
  ),
  found('PageLayoutShift', 'page_layout_shift', 'page', {
    source_frame_id: Text(),
    time: Decimal(),
    duration: Decimal(),
    layout_shift_details: Shape(optional({ value: Decimal(), had_recent_input: Boolean() })),
  }),
  found('PageLcp', 'page_lcp', 'page', {
    source_frame_id: Text(),
    time: Decimal(),
    lcp_details: Shape(
      optional({
        render_time: Decimal(),
        load_time: Decimal(),
        size: Decimal(),
        element_id: Text(),
        url: Text(),
        node_id: Integer(),
      }),
    ),
  }),
  found('PageLayoutSettled', 'page_layout_settled', 'page'),
  found('PageNavigationSettled', 'page_navigation_settled', 'page'),
  found('InteractionClick', 'interaction_click', 'interaction', {
    x: Integer(),
    y: Integer(),
    selector: Text(),
    tag: Text(),
    text: Text(),
  }),
  found('InteractionKey', 'interaction_key', 'interaction', { key: Text(), selector: Text(), tag: Text() }),
  found('InteractionScrollSettled', 'interaction_scroll_settled', 'interaction', {
    from_x: Integer(),
    from_y: Integer(),
    to_x: Integer(),
    to_y: Integer(),
    target_selector: Text(),
  }),
  event(
    'MonitorScreenshot',
    'monitor_screenshot',
    'screenshot',
    optional({ png: Text({ contentEncoding: 'base64' }) }),
  ),
  event('MonitorDisconnected', 'monitor_disconnected', 'monitor', optional({ reason: oneOf(['chrome_restarted']) })),
  event('MonitorReconnected', 'monitor_reconnected', 'monitor', optional({ reconnect_duration_ms: Integer() })),
  event(
    'MonitorReconnectFailed',
    'monitor_reconnect_failed',
    'monitor',
    optional({ reason: oneOf(['reconnect_exhausted']) }),
  ),
  event('MonitorInitFailed', 'monitor_init_failed', 'monitor', optional({ step: Text() })),
  event('ApiCall', 'api_call', 'control', {
    request_id: Text(),
    operation_id: Text(),
    status: Integer(),
    duration_ms: Decimal(),
  }),
  event('CdpConnect', 'cdp_connect', 'connection'),
  event('CdpDisconnect', 'cdp_disconnect', 'connection', {
    duration_ms: Decimal(),
    message_count: Integer({ description: 'Messages of the client and to it.' }),
    reason: oneOf(['client_close', 'upstream_changed', 'upstream_error', 'context_cancelled']),
  }),
  event('LiveViewConnect', 'live_view_connect', 'connection', { session_id: Text() }),
  event('LiveViewDisconnect', 'live_view_disconnect', 'connection', { session_id: Text(), duration_ms: Decimal() }),
  event('CaptchaSolveResult', 'captcha_solve_result', 'captcha', {
    captcha_type: oneOf(['hcaptcha', 'recaptcha_v2', 'recaptcha_v3', 'turnstile', 'geetest', 'other']),
    status: oneOf(['success', 'failure', 'timeout', 'abandoned']),
    duration_ms: Decimal(),
    ...optional({ task_id: Text(), website_host: Text(), website_path: Text(), error_code: Text() }),
  }),
  event('SystemOomKill', 'system_oom_kill', 'system', {
    process_name: Text(),
    pid: Integer(),
    rss_kb: Integer(),
    ...optional({
      trigger_process_name: Text(),
      trigger_pid: Integer(),
      constraint: oneOf(['none', 'memcg', 'cpuset', 'memory_policy']),
      mem_total_kb: Integer(),
      mem_free_kb: Integer(),
      top_tasks: List(Shape({ pid: Integer(), name: Text(), rss_kb: Integer() }), { maxItems: 5 }),
    }),
  }),
  event('ServiceCrashed', 'service_crashed', 'system', {
    service_name: Text(),
    phase: oneOf(['startup', 'running', 'gave_up']),
    ...optional({ pid: Integer() }),
  }),
];

export const TelemetryEnvelope = named(
  'BrowserTelemetryEventEnvelope',
  Shape({
    seq: Integer({ minimum: 1, description: 'Rises by session; a gap means that events were lost.' }),
    event: named(
      'BrowserTelemetryEvent',
      Type.Unsafe<unknown>({ oneOf: Events, discriminator: { propertyName: 'type' } }),
    ),
  }),
);

// Reading

export const StreamQuery = Shape({
  replay: Optional(
    Text({
      maxLength: 16,
      description: '`all` begins with the oldest of the last 1,024 events; otherwise the stream begins now.',
    }),
  ),
});

export const StreamHeaders = Shape({
  'Last-Event-ID': Optional(
    Text({ maxLength: 32, description: 'Goes on after the event with this `seq`. Takes precedence over `replay`.' }),
  ),
});

export const EventsQuery = Shape({
  limit: Integer({ minimum: 1, maximum: 100, default: 20, description: 'How many at most.' }),
  offset: Optional(
    Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'X-Next-Offset of the page before, of the same session. `since` is not looked at then.',
    }),
  ),
  since: Optional(
    Text({
      maxLength: 64,
      description: 'A time such as 2026-01-31T12:00:00Z, or a duration such as 5m; 5m when left out.',
    }),
  ),
  until: Optional(Text({ maxLength: 64, description: 'A time; events at it and later are left out.' })),
  category: Optional(
    List(oneOf([...telemetryCategories, 'monitor']), {
      maxItems: 20,
      description: 'Only these. A page may be empty although there are more.',
    }),
  ),
  order: Optional(
    oneOf(['asc', 'desc'], { default: 'asc', description: 'desc begins with the newest, and takes no `since`.' }),
  ),
});

export type EventsQuery = Static<typeof EventsQuery>;
