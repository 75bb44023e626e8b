import { Type, type Static } from 'typebox';
import { named, nullable, oneOf, Timestamp } from '../../api/schema.ts';

const Command = {
  command: Type.String({ minLength: 1, maxLength: 4096, description: 'A program’s name or path.' }),
  args: Type.Optional(Type.Array(Type.String({ maxLength: 131_072 }), { default: [], maxItems: 4096 })),
  cwd: Type.Optional(
    nullable(
      Type.String({
        pattern: '^/.*',
        maxLength: 4096,
        description: 'Its working directory; the home directory if left out.',
      }),
    ),
  ),
  env: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string', maxLength: 131_072 },
      propertyNames: { type: 'string', pattern: '^[^=]+$', maxLength: 1024 },
      maxProperties: 1024,
      default: {},
      description: 'Added to the session’s own environment.',
    }),
  ),
  as_user: Type.Optional(
    nullable(
      Type.String({
        maxLength: 64,
        description: 'A user’s name, a uid or uid:gid. Outside of its user namespace it is the session’s user.',
      }),
    ),
  ),
  as_root: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'As root of a separate user namespace: it has the rights of root there, and the rights of the session’s user on the session.',
    }),
  ),
  timeout_sec: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: 2_000_000,
        description: 'The seconds after which the process and its descendants are killed.',
      }),
    ),
  ),
};

export const ExecRequest = named('ProcessExecRequest', Type.Object(Command, { additionalProperties: false }));

export const ExecResult = named(
  'ProcessExecResult',
  Type.Object({
    exit_code: Type.Integer({ description: '128 and the signal’s number when a signal ended it.' }),
    stdout_b64: Type.String(),
    stderr_b64: Type.String(),
    duration_ms: Type.Integer(),
    stdout_dropped_bytes: Type.Optional(
      Type.Integer({ description: 'Bytes beyond the limit of 8 MiB, which were discarded.' }),
    ),
    stderr_dropped_bytes: Type.Optional(Type.Integer()),
  }),
);

const size = (what: string) => Type.Integer({ minimum: 1, maximum: 65_535, description: what });

export const SpawnRequest = named(
  'ProcessSpawnRequest',
  Type.Object(
    {
      ...Command,
      allocate_tty: Type.Optional(
        Type.Boolean({ default: false, description: 'On a terminal, which combines stdout and stderr.' }),
      ),
      rows: Type.Optional(size('Of the terminal; 24 if left out.')),
      cols: Type.Optional(size('Of the terminal; 80 if left out.')),
    },
    { additionalProperties: false },
  ),
);

export const SpawnResult = named(
  'ProcessSpawnResult',
  Type.Object({
    process_id: Type.String({ format: 'uuid' }),
    pid: Type.Integer({ description: 'As the session sees it.' }),
    started_at: Timestamp,
  }),
);

export const ProcessStatus = named(
  'ProcessStatus',
  Type.Object({
    state: oneOf(['running', 'exited']),
    exit_code: nullable(Type.Integer()),
    cpu_pct: Type.Number({
      description: 'Percent of one core, used by the process and its descendants since the last request.',
    }),
    mem_bytes: Type.Integer({ description: 'Of the process and its descendants.' }),
  }),
);

export const OutputEvent = named(
  'ProcessStreamEvent',
  Type.Object({
    stream: Type.Optional(oneOf(['stdout', 'stderr'])),
    data_b64: Type.Optional(Type.String()),
    event: Type.Optional(
      oneOf(['exit', 'dropped'], {
        description:
          '`dropped`: so many bytes came before what is kept (the last 4 MiB), or faster than they were read.',
      }),
    ),
    exit_code: Type.Optional(Type.Integer()),
    dropped_bytes: Type.Optional(Type.Integer()),
  }),
);

export const StdinRequest = named(
  'ProcessStdinRequest',
  Type.Object(
    {
      data_b64: Type.String({ contentEncoding: 'base64', pattern: '^[A-Za-z0-9+/_-]*={0,2}$' }),
      eof: Type.Optional(Type.Boolean({ default: false, description: 'Close stdin after these bytes.' })),
    },
    { additionalProperties: false },
  ),
);
export const StdinResult = named('ProcessStdinResult', Type.Object({ written_bytes: Type.Integer() }));

export const KillRequest = named(
  'ProcessKillRequest',
  Type.Object({ signal: oneOf(['TERM', 'KILL', 'INT', 'HUP'], { default: 'TERM' }) }, { additionalProperties: false }),
);

export const ResizeRequest = named(
  'ProcessResizeRequest',
  Type.Object({ rows: size('Lines.'), cols: size('Characters of a line.') }, { additionalProperties: false }),
);

export const Ok = named('Ok', Type.Object({ ok: Type.Boolean({ default: true }) }));

export type ExecRequest = Static<typeof ExecRequest>;
export type ExecResult = Static<typeof ExecResult>;
export type SpawnRequest = Static<typeof SpawnRequest>;
export type SpawnResult = Static<typeof SpawnResult>;
export type ProcessStatus = Static<typeof ProcessStatus>;
