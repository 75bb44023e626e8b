import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { named, oneOf } from './schema.ts';
import type { EventCategory } from './telemetry.ts';

/**
 * The events of a session: the name of each in the reference, its category and its fields. The reference, the types of the producers and
 * the category of an event are derived from this table.
 */

const { Integer, Number: Decimal, Boolean, String: Text, Optional, Object: Shape, Array: List } = Type;

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

const optional = <Fields extends TProperties>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Optional(schema)])) as {
    [Name in keyof Fields]: ReturnType<typeof Optional<Fields[Name]>>;
  };

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

const event = <const Category extends EventCategory, Data extends TProperties>(
  name: string,
  category: Category,
  data: Data | undefined,
) => ({ name, category, data: data && Shape(data) });

/** An event of a place in the browser. */
const found = <const Category extends EventCategory, Data extends TProperties>(
  name: string,
  category: Category,
  data: Data,
) => event(name, category, { ...context, ...optional(data) });

/** In the order of docs/telemetry.md. */
const events = {
  console_log: found('ConsoleLog', 'console', {
    level: Text(),
    text: Text(),
    args: List(Text()),
    stack_trace: CallStack,
  }),
  console_error: event('ConsoleError', 'console', {
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
  network_request: found('NetworkRequest', 'network', {
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
  network_response: found('NetworkResponse', 'network', {
    request_id: Text(),
    method: Text(),
    status: Integer(),
    status_text: Text(),
    headers: Headers,
    mime_type: Text(),
    resource_type: Text(),
    body: Text({ description: 'Text only, cut at 8 KB (JSON, XML, forms) or 4 KB (other text).' }),
  }),
  network_loading_failed: found('NetworkLoadingFailed', 'network', {
    request_id: Text(),
    error_text: Text(),
    canceled: Boolean(),
    resource_type: Text(),
  }),
  network_idle: found('NetworkIdle', 'network', {}),
  page_navigation: event(
    'PageNavigation',
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
  page_dom_content_loaded: found('PageDomContentLoaded', 'page', { cdp_timestamp: Decimal() }),
  page_load: found('PageLoad', 'page', { cdp_timestamp: Decimal() }),
  page_tab_opened: event(
    'PageTabOpened',
    'page',
    optional({ target_id: Text(), target_type: TargetType, url: Text(), title: Text(), opener_id: Text() }),
  ),
  page_layout_shift: found('PageLayoutShift', 'page', {
    source_frame_id: Text(),
    time: Decimal(),
    duration: Decimal(),
    layout_shift_details: Shape(optional({ value: Decimal(), had_recent_input: Boolean() })),
  }),
  page_lcp: found('PageLcp', 'page', {
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
  page_layout_settled: found('PageLayoutSettled', 'page', {}),
  page_navigation_settled: found('PageNavigationSettled', 'page', {}),
  interaction_click: found('InteractionClick', 'interaction', {
    x: Integer(),
    y: Integer(),
    selector: Text(),
    tag: Text(),
    text: Text(),
  }),
  interaction_key: found('InteractionKey', 'interaction', { key: Text(), selector: Text(), tag: Text() }),
  interaction_scroll_settled: found('InteractionScrollSettled', 'interaction', {
    from_x: Integer(),
    from_y: Integer(),
    to_x: Integer(),
    to_y: Integer(),
    target_selector: Text(),
  }),
  monitor_screenshot: event('MonitorScreenshot', 'screenshot', optional({ png: Text({ contentEncoding: 'base64' }) })),
  monitor_disconnected: event('MonitorDisconnected', 'monitor', optional({ reason: oneOf(['chrome_restarted']) })),
  monitor_reconnected: event('MonitorReconnected', 'monitor', optional({ reconnect_duration_ms: Integer() })),
  monitor_reconnect_failed: event(
    'MonitorReconnectFailed',
    'monitor',
    optional({ reason: oneOf(['reconnect_exhausted']) }),
  ),
  monitor_init_failed: event('MonitorInitFailed', 'monitor', optional({ step: Text() })),
  api_call: event('ApiCall', 'control', {
    request_id: Text(),
    operation_id: Text(),
    status: Integer(),
    duration_ms: Decimal(),
  }),
  cdp_connect: event('CdpConnect', 'connection', undefined),
  cdp_disconnect: event('CdpDisconnect', 'connection', {
    duration_ms: Decimal(),
    message_count: Integer({ description: 'Messages of the client and to it.' }),
    reason: oneOf(['client_close', 'upstream_changed', 'upstream_error', 'context_cancelled']),
  }),
  live_view_connect: event('LiveViewConnect', 'connection', { session_id: Text() }),
  live_view_disconnect: event('LiveViewDisconnect', 'connection', { session_id: Text(), duration_ms: Decimal() }),
  captcha_solve_result: event('CaptchaSolveResult', 'captcha', {
    captcha_type: oneOf(['hcaptcha', 'recaptcha_v2', 'recaptcha_v3', 'turnstile', 'geetest', 'other']),
    status: oneOf(['success', 'failure', 'timeout', 'abandoned']),
    duration_ms: Decimal(),
    ...optional({ task_id: Text(), website_host: Text(), website_path: Text(), error_code: Text() }),
  }),
  system_oom_kill: event('SystemOomKill', 'system', {
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
  service_crashed: event('ServiceCrashed', 'system', {
    service_name: Text(),
    phase: oneOf(['startup', 'running', 'gave_up']),
    ...optional({ pid: Integer() }),
  }),
};

export type EventType = keyof typeof events;
/** The fields of an event. Those that are undefined are left out. */
export type EventData<T extends EventType> = Static<NonNullable<(typeof events)[T]['data']>>;

/** Where in the browser an event happened. */
export type EventContext = Static<TObject<typeof context>>;

export const categoryOf = (type: EventType): EventCategory => events[type].category;

export const eventSchemas = Object.entries(events).map(([type, { name, category, data }]) =>
  named(
    `Browser${name}Event`,
    Shape({
      ts: Integer({ description: 'Unix microseconds.' }),
      type: Type.Literal(type),
      category: Type.Literal(category),
      source: Source,
      ...(data ? { data: Optional(data) } : {}),
      truncated: Optional(
        Boolean({
          description:
            '`data` was left out: the event had more than 1,000,000 bytes, or the session has more secrets than can be hidden.',
        }),
      ),
    }),
  ),
);
