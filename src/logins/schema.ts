import { Type, type Static } from 'typebox';
import { ErrorBody, named, nullable, oneOf, Paging, SlugName, Timestamp } from '../api/schema.ts';
import { TelemetryRequest } from '../sessions/schema.ts';
import { connectionLife, loginLife } from './state.ts';
import { flowSteps, flowTypes, reauthReasons } from './api-enums.ts';

const endOfQuestion = 'When the current question of the login ends without an answer, at the earliest.';
const { Optional } = Type;
const Text = (maxLength: number, more: object = {}) => Type.String({ maxLength, ...more });
const Uri = { type: 'string', format: 'uri', maxLength: 2048 } as const;
const LoginUrl = Type.Unsafe<string>({
  ...Uri,
  description: 'The login page; when left out, the service looks for it.',
});
const Domains = Type.Array(Text(512, { minLength: 1 }), {
  maxItems: 100,
  description:
    'Further sites that a login may lead through, each with the names below it (`www.shop.example`: not with those below `shop.example`). A host of an identity provider with many customers (`acme.okta.com`) stands for itself. With `http://` before it, values are typed there without https too.',
});

// Configuration

const CredentialReference = named(
  'CredentialReference',
  Type.Object(
    {
      name: Optional(Text(255, { minLength: 1 })),
      provider: Optional(Text(255, { minLength: 1 })),
      path: Optional(Text(2048, { minLength: 1 })),
      auto: Optional(Type.Boolean()),
    },
    { additionalProperties: false, description: '`{name}`, `{provider, path}` or `{provider, auto: true}`.' },
  ),
);

const ProxyRef = named(
  'ProxyRef',
  Type.Object(
    { id: Optional(Text(255, { minLength: 1 })), name: Optional(Text(255, { minLength: 1 })) },
    { additionalProperties: false, description: 'A proxy by id, or by a unique name.' },
  ),
);

const Interval = Type.Integer({
  minimum: 300,
  maximum: 86_400,
  description: 'Seconds between two checks whether the profile is still logged in; 3600 when left out.',
});

const HealthChecks = { description: 'Check on schedule. False also disables automatic logins.' };
const AutoReauth = { description: 'Log in automatically when a check finds the profile logged out.' };
const SaveCredentials = {
  description: 'Store the values that a person typed as a credential after a successful login.',
};
const RecordSession = { description: 'Record a video of each login.' };

export const CreateConnection = named(
  'ManagedAuthCreateRequest',
  Type.Object(
    {
      domain: Text(2048, {
        minLength: 1,
        description:
          'The site, such as `shop.example`. Of a whole address, only the host is kept, and `http:` if it starts with it: without it, values are only typed over https.',
      }),
      profile_name: {
        ...SlugName,
        description: 'The profile that is kept logged in. Created if it does not exist.',
      } as typeof SlugName,
      login_url: Optional(LoginUrl),
      allowed_domains: Optional(Domains),
      credential: Optional(CredentialReference),
      proxy: Optional(ProxyRef),
      health_check_interval: Optional(Interval),
      health_checks: Optional(Type.Boolean({ default: true, ...HealthChecks })),
      auto_reauth: Optional(Type.Boolean({ default: true, ...AutoReauth })),
      save_credentials: Optional(Type.Boolean({ default: true, ...SaveCredentials })),
      record_session: Optional(Type.Boolean({ default: false, ...RecordSession })),
      browser_telemetry: Optional(nullable(TelemetryRequest)),
    },
    { additionalProperties: false },
  ),
);

export const UpdateConnection = named(
  'ManagedAuthUpdateRequest',
  Type.Object(
    {
      login_url: Optional(
        Type.Unsafe<string>({ anyOf: [Uri, { type: 'string', maxLength: 0 }], description: 'Empty: none.' }),
      ),
      allowed_domains: Optional(Domains),
      credential: Optional(nullable(CredentialReference)),
      proxy: Optional(nullable(ProxyRef)),
      health_check_interval: Optional(Interval),
      health_checks: Optional(Type.Boolean(HealthChecks)),
      auto_reauth: Optional(Type.Boolean(AutoReauth)),
      save_credentials: Optional(Type.Boolean(SaveCredentials)),
      record_session: Optional(Type.Boolean(RecordSession)),
      browser_telemetry: Optional(nullable(TelemetryRequest)),
    },
    {
      additionalProperties: false,
      description: 'Fields that are left out do not change. Null removes `credential` or `proxy`.',
    },
  ),
);

export const ConnectionList = Type.Object({
  ...Paging,
  domain: Optional(Text(2048, { description: 'The whole domain.' })),
  profile_name: Optional(Text(255, { description: 'The whole name; case and accents do not count.' })),
  query: Optional(Text(1024, { description: 'Case-insensitive part of domain or profile name, or a whole id.' })),
});

// What a login asks for

const MfaType = named('MFAType', oneOf(['sms', 'call', 'email', 'totp', 'push', 'password', 'switch']));

const Field = named(
  'ManagedAuthField',
  Type.Object({
    id: Type.String({ description: 'The key in `field_values` of a submit.' }),
    ref: Type.String(),
    type: oneOf(['identifier', 'password', 'code', 'totp_code', 'totp_secret', 'text']),
    label: Optional(Type.String()),
    required: Optional(Type.Boolean({ default: true })),
    observed_selector: Optional(nullable(Type.String())),
    hint: Optional(Type.String()),
    options: Optional(
      Type.Array(Type.Object({ label: Type.String(), value: Type.String() }), {
        description: 'The values that the site offers, if any. Corral extension.',
      }),
    ),
  }),
);

const Choice = named(
  'ManagedAuthChoice',
  Type.Object({
    id: Type.String({ description: 'The value of `selected_choice_id` in a submit.' }),
    type: oneOf([
      'mfa_method',
      'sso_provider',
      'sign_in_method',
      'auth_method',
      'identifier_method',
      'account',
      'other',
    ]),
    label: Type.String(),
    description: Optional(nullable(Type.String())),
    observed_selector: Optional(nullable(Type.String())),
  }),
);

const DiscoveredField = named(
  'DiscoveredField',
  Type.Object(
    {
      name: Type.String(),
      type: oneOf(['text', 'email', 'password', 'tel', 'number', 'url', 'code', 'totp']),
      label: Type.String(),
      selector: Type.String(),
      placeholder: Optional(Type.String()),
      hint: Optional(Type.String()),
      required: Optional(Type.Boolean({ default: true })),
      linked_mfa_type: Optional(nullable(MfaType)),
    },
    { description: 'The older form of `fields`.' },
  ),
);

const MfaOption = named(
  'MFAOption',
  Type.Object(
    {
      type: MfaType,
      label: Type.String(),
      target: Optional(nullable(Type.String())),
      description: Optional(nullable(Type.String())),
    },
    { description: 'The older form of choices of a second factor.' },
  ),
);

const SignInOption = named(
  'SignInOption',
  Type.Object(
    { id: Type.String(), label: Type.String(), description: Optional(nullable(Type.String())) },
    { description: 'The older form of other choices.' },
  ),
);

const SsoButton = named(
  'SSOButton',
  Type.Object(
    { selector: Type.String(), provider: Type.String(), label: Type.String() },
    { description: 'The older form of choices of an identity provider.' },
  ),
);

const asked = {
  fields: Type.Array(Field),
  choices: Type.Array(Choice),
  discovered_fields: Type.Array(DiscoveredField),
  mfa_options: Type.Array(MfaOption),
  sign_in_options: Type.Array(SignInOption),
  pending_sso_buttons: Type.Array(SsoButton),
};

const FlowStatus = oneOf(loginLife.stateNames);
const FlowStep = oneOf(flowSteps);
const FlowType = oneOf(flowTypes);

const orNull = <T extends Record<string, ReturnType<typeof Type.Array>>>(shapes: T) =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, Optional(nullable(shape))])) as {
    [K in keyof T]: ReturnType<typeof Optional<ReturnType<typeof nullable<T[K]>>>>;
  };
const nullableText = (description?: string) =>
  Optional(nullable(Type.String(description === undefined ? {} : { description })));

export const Connection = named(
  'ManagedAuth',
  Type.Object({
    id: Type.String(),
    domain: Type.String(),
    profile_name: Type.String(),
    status: oneOf(['AUTHENTICATED', 'NEEDS_AUTH']),
    login_url: Optional(Type.String()),
    post_login_url: Optional(
      Type.String({ description: 'The page at the end of the last login; checks start there.' }),
    ),
    allowed_domains: Optional(Type.Array(Type.String())),
    confirmed_hosts: Optional(
      Type.Array(Type.String(), {
        description:
          'Hosts of identity providers that a person confirmed, or typed values at, in a login that succeeded. Another `credential` clears them. Corral extension.',
      }),
    ),
    credential: Optional(CredentialReference),
    proxy_id: Optional(Type.String()),
    health_check_interval: Optional(nullable(Interval)),
    health_checks: Optional(Type.Boolean()),
    auto_reauth: Optional(Type.Boolean()),
    save_credentials: Type.Boolean(),
    record_session: Type.Boolean(),
    browser_telemetry: Optional(nullable(TelemetryRequest)),
    last_auth_check_at: Optional(Timestamp),
    last_auth_at: Optional({
      ...Timestamp,
      deprecated: true,
      description: 'The same as last_auth_check_at.',
    } as typeof Timestamp),
    can_reauth: Optional(Type.Boolean()),
    can_reauth_reason: Optional(oneOf(reauthReasons)),
    sso_provider: nullableText(),
    flow_status: Optional(nullable(FlowStatus)),
    flow_step: Optional(nullable(FlowStep)),
    flow_type: Optional(nullable(FlowType)),
    flow_expires_at: Optional(nullable(Timestamp)),
    interaction_id: nullableText('The id of the current question of the login. Send it with a submit.'),
    input_expires_at: Optional(nullable({ ...Timestamp, description: endOfQuestion } as typeof Timestamp)),
    ...orNull(asked),
    external_action_message: nullableText(
      'The action that the user must take outside of the browser. While the login waits for a code that the service looks for by itself, a sentence about that.',
    ),
    website_error: nullableText('The error message of the site.'),
    error_code: nullableText(),
    error_message: nullableText(),
    hosted_url: nullableText('The hosted login page. It needs no key.'),
    live_view_url: nullableText('The browser of the flow.'),
    browser_session_id: nullableText(),
  }),
);

// Flows

export const StartLogin = named(
  'LoginRequest',
  Type.Object(
    {
      proxy: Optional(ProxyRef),
      record_session: Optional(Type.Boolean()),
      browser_telemetry: Optional(nullable(TelemetryRequest)),
    },
    { additionalProperties: false, description: 'For this login only.' },
  ),
);

export const LoginStarted = named(
  'LoginResponse',
  Type.Object({
    id: Type.String({ description: 'The id of the connection.' }),
    flow_type: FlowType,
    hosted_url: Type.String(),
    flow_expires_at: Timestamp,
    handoff_code: Optional(Type.String({ description: 'For embedded pages: exchanged once, for a token.' })),
    live_view_url: Optional(Type.String()),
  }),
);

const Values = (description: string) =>
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    maxProperties: 100,
    additionalProperties: { type: 'string', maxLength: 10_000 },
    description,
  });

export const SubmitFields = named(
  'SubmitFieldsRequest',
  Type.Object(
    {
      interaction_id: Optional(
        Text(255, { description: 'The id of the answered question. Refused if the login asks another question now.' }),
      ),
      field_values: Optional(Values('By the id of the field.')),
      selected_choice_id: Optional(Text(255, { minLength: 1 })),
      fields: Optional(Values('By the name of the discovered field. The older form of field_values.')),
      sso_button_selector: Optional(Text(4096, { minLength: 1 })),
      sso_provider: Optional(Text(255, { minLength: 1 })),
      mfa_option_id: Optional(Text(255, { minLength: 1, description: 'The type of the option.' })),
      sign_in_option_id: Optional(Text(255, { minLength: 1 })),
    },
    { additionalProperties: false },
  ),
);

export const PushCode = named(
  'ManagedAuthCodeRequest',
  Type.Object(
    { code: Text(64, { minLength: 1, pattern: '^[^\\u0000-\\u001f\\u007f]+$' }) },
    { additionalProperties: false },
  ),
);

export const Accepted = named('SubmitFieldsResponse', Type.Object({ accepted: Type.Boolean() }));

export const Exchange = named(
  'ManagedAuthExchangeRequest',
  Type.Object({ code: Text(2048) }, { additionalProperties: false }),
);
export const Exchanged = named(
  'ManagedAuthExchangeResponse',
  Type.Object({ invocation_id: Type.String(), jwt: Type.String() }),
);

const optional = <T extends Record<string, ReturnType<typeof Type.Array>>>(shapes: T) =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, Optional(shape)])) as {
    [K in keyof T]: ReturnType<typeof Optional<T[K]>>;
  };

export const StateEvent = named(
  'ManagedAuthStateEvent',
  Type.Object({
    event: Type.Literal('managed_auth_state'),
    timestamp: Timestamp,
    flow_status: FlowStatus,
    flow_step: FlowStep,
    flow_type: Optional(FlowType),
    interaction_id: Optional(Type.String()),
    input_expires_at: Optional({ ...Timestamp, description: endOfQuestion } as typeof Timestamp),
    ...optional(asked),
    external_action_message: Optional(Type.String()),
    website_error: Optional(Type.String()),
    error_code: Optional(Type.String()),
    error_message: Optional(Type.String()),
    hosted_url: Optional(Type.String()),
    live_view_url: Optional(Type.String()),
    post_login_url: Optional(Type.String()),
  }),
);

export const ConnectionEvent = named(
  'ManagedAuthEvent',
  Type.Union([
    StateEvent,
    named('ErrorEvent', Type.Object({ event: Type.Literal('error'), timestamp: Timestamp, error: ErrorBody })),
    named('SSEHeartbeatEvent', Type.Object({ event: Type.Literal('sse_heartbeat'), timestamp: Timestamp })),
  ]),
);

// What happened

export const TimelineList = Type.Object({ ...Paging, type: Optional(oneOf(['login', 'reauth', 'health_check'])) });

export const TimelineEvent = named(
  'ManagedAuthTimelineEvent',
  Type.Object({
    id: Type.String(),
    type: oneOf(['login', 'reauth', 'health_check']),
    timestamp: Timestamp,
    status: oneOf([...loginLife.stateNames, ...connectionLife.stateNames]),
    previous_status: Optional(oneOf(['AUTHENTICATED', 'NEEDS_AUTH'])),
    step: Optional(
      oneOf([
        'INITIALIZED',
        'DISCOVERING',
        'AWAITING_INPUT',
        'AWAITING_EXTERNAL_ACTION',
        'AWAITING_HUMAN_INTERVENTION',
        'SUBMITTING',
        'COMPLETED',
        'EXPIRED',
      ]),
    ),
    error_code: Optional(Type.String()),
    error_message: Optional(Type.String()),
    website_error: Optional(Type.String()),
    browser_session_id: Optional(Type.String()),
    replay_id: Optional(Type.String()),
    telemetry_captured: Optional(Type.Boolean()),
    updated_at: Optional(Timestamp),
  }),
);

// What logins leave behind

const Texts = Type.Array(Type.String());
const free = { additionalProperties: true };

/** What a successful login left behind. */
export const RecipeShape = named(
  'ManagedAuthRecipe',
  Type.Object(
    {
      version: Type.Integer(),
      entryUrl: Type.String({ description: 'The first page of the login.' }),
      steps: Type.Array(
        Type.Object(
          {
            page: Type.String({ description: 'Origin and path of the page.' }),
            kind: Type.String(),
            fills: Type.Array(
              Type.Object(
                {
                  key: Type.String({ description: 'The name of the value in a credential. Never the value.' }),
                  type: Type.String(),
                  label: Type.String(),
                  selectors: Texts,
                },
                free,
              ),
            ),
            click: Optional(Type.Object({ stoodFor: Type.String(), label: Type.String(), selectors: Texts }, free)),
          },
          free,
        ),
      ),
      success: Type.Object({ url: Type.String(), cookies: Texts, storage: Texts }, free),
      requirements: Type.Object({}, { ...free, description: 'The values that the login needed.' }),
      learnedAt: Timestamp,
    },
    free,
  ),
);

/** The newest login, look by look. */
export const Explanation = named(
  'ManagedAuthExplanation',
  Type.Object({
    flow: nullable(TimelineEvent),
    records: Type.Array(
      Type.Object(
        {
          at: Timestamp,
          state: Type.String(),
          url: Type.String(),
          title: Type.String(),
          kind: Optional(Type.String()),
          decision: Type.String({ description: 'The step in one sentence.' }),
          evidence: Type.Array(Type.String(), { description: 'The reasons for the classification of the page.' }),
        },
        free,
      ),
      { description: 'The last 20 at most, oldest first. Together they have 65,536 characters at most.' },
    ),
  }),
);

export type CreateConnection = Static<typeof CreateConnection>;
export type UpdateConnection = Static<typeof UpdateConnection>;
export type ConnectionList = Static<typeof ConnectionList>;
export type Connection = Static<typeof Connection>;
export type StartLogin = Static<typeof StartLogin>;
export type LoginStarted = Static<typeof LoginStarted>;
export type SubmitFields = Static<typeof SubmitFields>;
export type Exchanged = Static<typeof Exchanged>;
export type StateEvent = Static<typeof StateEvent>;
export type ConnectionEvent = Static<typeof ConnectionEvent>;
export type TimelineList = Static<typeof TimelineList>;
export type TimelineEvent = Static<typeof TimelineEvent>;
