import { Type, type Static } from 'typebox';
import { ErrorBody, named, nullable, oneOf, Paging, Timestamp } from '../api/schema.ts';
import { mostZip } from '../uploads/uploads.ts';
import { deploymentLife, invocationLife } from './state.ts';

/** A label, as app and action names and versions are. */
const Label = (description: string) => Type.String({ minLength: 1, maxLength: 255, description });
const EnvVars = Type.Record(Type.String(), Type.String(), {
  description: 'The names of its environment variables. The values are encrypted and never returned.',
});
const Region = Type.String({ description: 'The region of the node that received it (CORRAL_REGION).' });

export const Deployment = named(
  'Deployment',
  Type.Object({
    id: Type.String(),
    created_at: Timestamp,
    updated_at: nullable(Timestamp),
    region: Region,
    status: oneOf(deploymentLife.stateNames, { description: 'docs/deployments.md explains them.' }),
    status_reason: Type.Optional(Type.String()),
    entrypoint_rel_path: Type.String(),
    env_vars: EnvVars,
    source_type: oneOf(['file', 'github']),
    source_url: Type.Optional(Type.String()),
    source_ref: Type.Optional(Type.String()),
    source_path: Type.Optional(Type.String()),
    source_checksum: Type.Optional(Type.String({ description: 'The SHA-256 of the zip, in hex.' })),
  }),
);

export const GitSource = named(
  'DeploymentSource',
  Type.Object({
    type: oneOf(['github']),
    url: Type.String({ maxLength: 2048, description: 'An https address of a git repository.' }),
    ref: Type.String({ minLength: 1, maxLength: 255, description: 'A branch, a tag or a commit.' }),
    entrypoint: Type.String({ minLength: 1, maxLength: 1024, description: 'The file that registers the apps.' }),
    path: Type.Optional(Type.String({ maxLength: 1024, description: 'The directory of the repository to deploy.' })),
    auth: Type.Optional(
      Type.Object({ method: oneOf(['github_token']), token: Type.String({ minLength: 1, maxLength: 1024 }) }),
    ),
  }),
);

/** A form; the routes read it part by part. */
export const CreateDeployment = named(
  'CreateDeploymentRequest',
  Type.Object({
    file: Type.Optional(Type.String({ format: 'binary', description: `A zip of the source, at most ${mostZip}.` })),
    entrypoint_rel_path: Type.Optional(
      Type.String({ description: 'The file of the zip that registers the apps: JavaScript or TypeScript.' }),
    ),
    source: Type.Optional(GitSource),
    version: Type.Optional(Type.String({ default: 'latest', description: 'The label of this version of the apps.' })),
    region: Type.Optional(Type.String({ description: 'The region of this service, or left out.' })),
    force: Type.Optional(
      Type.Boolean({ default: false, description: 'Replace a deployed version. `latest` is always replaced.' }),
    ),
    env_vars: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Sent as env_vars[NAME]. Encrypted, and never returned.',
      }),
    ),
  }),
);

export const DeploymentList = Type.Object({
  ...Paging,
  app_name: Type.Optional(Type.String({ maxLength: 1024, description: 'The name of an app that it has or had.' })),
  app_version: Type.Optional(Type.String({ maxLength: 1024, description: 'Its version; needs app_name.' })),
  query: Type.Optional(Type.String({ maxLength: 1024, description: 'A whole id, or a part of an app name.' })),
});

const Action = named(
  'AppAction',
  Type.Object({
    name: Type.String(),
    input_schema: Type.Optional(nullable(Type.Record(Type.String(), Type.Unknown()))),
    output_schema: Type.Optional(nullable(Type.Record(Type.String(), Type.Unknown()))),
  }),
);

export const App = named(
  'AppVersionSummary',
  Type.Object({
    id: Type.String(),
    app_name: Type.String(),
    version: Type.String(),
    region: Region,
    deployment: Type.String({ description: 'The id of the deployment that serves it.' }),
    actions: Type.Array(Action),
    env_vars: EnvVars,
  }),
);

export const AppList = Type.Object({
  ...Paging,
  app_name: Type.Optional(Type.String({ maxLength: 1024 })),
  version: Type.Optional(Type.String({ maxLength: 1024 })),
  query: Type.Optional(Type.String({ maxLength: 1024, description: 'A part of the name.' })),
});

export const mostPayload = 4.5 * 2 ** 20;

export const CreateInvocation = named(
  'InvokeRequest',
  Type.Object({
    app_name: Label('The app.'),
    action_name: Label('Its action.'),
    version: { ...Label('The version of the app.'), default: 'latest' },
    payload: Type.Optional(
      Type.String({ maxLength: mostPayload, description: 'The input of the action, as JSON text; at most 4.5 MiB.' }),
    ),
    async: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Answer immediately with 202. Otherwise the answer has the result, or is 202 after 100 s.',
      }),
    ),
    async_timeout_seconds: Type.Optional(
      Type.Integer({ minimum: 10, maximum: 3600, default: 900, description: 'The maximum time of the action.' }),
    ),
  }),
);

const Status = oneOf(invocationLife.stateNames);

export const InvokeResponse = named(
  'InvokeResponse',
  Type.Object({
    id: Type.String(),
    action_name: Type.String(),
    status: Status,
    output: Type.Optional(Type.String({ description: 'The result of the action, as JSON text.' })),
    status_reason: Type.Optional(Type.String()),
  }),
);

export const Invocation = named(
  'Invocation',
  Type.Object({
    id: Type.String(),
    app_name: Type.String(),
    version: Type.String(),
    action_name: Type.String(),
    started_at: Timestamp,
    status: Status,
    finished_at: nullable(Timestamp),
    payload: Type.Optional(Type.String()),
    output: Type.Optional(Type.String()),
    status_reason: Type.Optional(Type.String()),
  }),
);

export const UpdateInvocation = named(
  'InvocationUpdateRequest',
  Type.Object({
    status: oneOf(['succeeded', 'failed'], { description: '`failed` cancels it: its process and its browsers end.' }),
    output: Type.Optional(Type.String({ maxLength: mostPayload, description: 'Its output, as JSON text.' })),
  }),
);

export const InvocationList = Type.Object({
  ...Paging,
  app_name: Type.Optional(Type.String({ maxLength: 1024 })),
  version: Type.Optional(Type.String({ maxLength: 1024 })),
  action_name: Type.Optional(Type.String({ maxLength: 1024 })),
  deployment_id: Type.Optional(Type.String({ maxLength: 1024 })),
  status: Type.Optional(Status),
  since: Type.Optional(Type.String({ maxLength: 64, description: 'A time, or a duration such as 5m.' })),
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'A whole id, or a part of an app or action name.' }),
  ),
});

export const Since = Type.Object({
  since: Type.Optional(
    Type.String({ maxLength: 64, description: 'Leaves out older lines: a time, or a duration such as 5m.' }),
  ),
});

const LogEvent = named(
  'LogEvent',
  Type.Object({ event: Type.Literal('log'), timestamp: Timestamp, message: Type.String() }),
);
const ErrorEvent = named(
  'ErrorEvent',
  Type.Object({
    event: Type.Literal('error'),
    timestamp: Timestamp,
    error: ErrorBody,
  }),
);
const Heartbeat = named('HeartbeatEvent', Type.Object({ event: Type.Literal('sse_heartbeat'), timestamp: Timestamp }));

export const DeploymentEvent = named(
  'DeploymentEvent',
  Type.Union([
    LogEvent,
    Type.Object({ event: Type.Literal('deployment_state'), timestamp: Timestamp, deployment: Deployment }),
    Type.Object({
      event: Type.Literal('app_version_summary'),
      timestamp: Timestamp,
      id: Type.String(),
      app_name: Type.String(),
      version: Type.String(),
      region: Region,
      actions: Type.Array(Action),
      env_vars: Type.Optional(EnvVars),
    }),
    ErrorEvent,
    Heartbeat,
  ]),
);

export const InvocationEvent = named(
  'InvocationEvent',
  Type.Union([
    LogEvent,
    Type.Object({ event: Type.Literal('invocation_state'), timestamp: Timestamp, invocation: Invocation }),
    ErrorEvent,
    Heartbeat,
  ]),
);

export type Deployment = Static<typeof Deployment>;
export type GitSource = Static<typeof GitSource>;
export type DeploymentList = Static<typeof DeploymentList>;
export type DeploymentEvent = Static<typeof DeploymentEvent>;
export type App = Static<typeof App>;
export type AppList = Static<typeof AppList>;
export type CreateInvocation = Static<typeof CreateInvocation>;
export type InvokeResponse = Static<typeof InvokeResponse>;
export type Invocation = Static<typeof Invocation>;
export type UpdateInvocation = Static<typeof UpdateInvocation>;
export type InvocationList = Static<typeof InvocationList>;
export type InvocationEvent = Static<typeof InvocationEvent>;
