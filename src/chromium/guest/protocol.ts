import { Type, type Static, type TSchema } from 'typebox';

/**
 * Every request of the service to a guest, with its arguments and answers. Answers are checked against these shapes where they arrive,
 * since the session's own processes may have made the guest send anything. Arguments are checked before they are sent: the guest imports
 * only the types, because TypeBox would be most of its code.
 */

/** The most bytes kept of each output of a command that is waited for. */
export const MOST_KEPT = 8 * 1024 * 1024;
/** The most bytes of a process's output in the log of an ended session. */
export const TAIL_BYTES = 4096;
/** The most bytes of a piece of a process's output: Node reads 64 KiB at once. */
const MOST_PIECE = 64 * 1024;
/** The most bytes of a code's result. */
const MOST_RESULT = 10 * 1024 * 1024;
/** The most bytes of each output of code: the guest keeps 1 MiB of it, and the stack of an error. */
const MOST_PRINTED = 1.5 * 1024 * 1024;

const base64Length = (bytes: number) => Math.ceil(bytes / 3) * 4;
const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const pid = Type.Integer({ minimum: 1, maximum: 2 ** 31 });
const exitCode = Type.Integer({ minimum: -1, maximum: 1024 });
const path = Type.String({ maxLength: 16_384 });

/** The request is done, or starts; without content. */
export const Done = Type.Object({});

// ---- processes

const command = {
  command: Type.String(),
  args: Type.Array(Type.String()),
  cwd: orNull(Type.String()),
  env: Type.Record(Type.String(), Type.String()),
  as_user: orNull(Type.String()),
  as_root: Type.Boolean(),
};
const Command = Type.Object(command);
export type Command = Static<typeof Command>;
const timeout_sec = orNull(Type.Number());
const ofProcess = { process_id: Type.String() };

export const Begun = Type.Object({ pid });
export const Ended = Type.Object({
  exit_code: exitCode,
  duration_ms: count,
  timed_out: Type.Boolean(),
  stdout_bytes: Type.Integer({ minimum: 0, maximum: MOST_KEPT }),
  stderr_bytes: Type.Integer({ minimum: 0, maximum: MOST_KEPT }),
  stdout_dropped: count,
  stderr_dropped: count,
});
export const Spawned = Type.Object({
  process_id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  pid,
  started_at: Type.String({ maxLength: 40, pattern: '^[0-9T:.Z-]+$' }),
});
export const Exited = Type.Object({ exit_code: exitCode });
export const ProcessStatus = Type.Object({
  state: Type.Union([Type.Literal('running'), Type.Literal('exited')]),
  exit_code: orNull(exitCode),
  cpu_pct: Type.Number({ minimum: 0, maximum: 1e6 }),
  mem_bytes: count,
});
export const OutputOpened = Type.Object({ tty: Type.Boolean() });
export const OutputItem = Type.Union([
  Type.Object({
    stream: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
    data_b64: Type.String({ maxLength: base64Length(MOST_PIECE) }),
  }),
  Type.Object({ event: Type.Literal('exit'), exit_code: exitCode }),
  Type.Object({ event: Type.Literal('dropped'), dropped_bytes: count }),
]);
export type OutputItem = Static<typeof OutputItem>;
const Written = Type.Object({ written_bytes: count });
const Ok = Type.Object({ ok: Type.Literal(true) });
const Tail = Type.Object({
  tail_b64: Type.String({ maxLength: base64Length(TAIL_BYTES) }),
  exit_code: orNull(exitCode),
});

const processes = {
  exec: { args: Type.Object({ ...command, timeout_sec, most: count }), says: Type.Union([Begun, Ended]) },
  spawn: {
    args: Type.Object({ ...command, timeout_sec, allocate_tty: Type.Boolean(), rows: count, cols: count }),
    says: Type.Union([Spawned, Exited]),
  },
  status: { args: Type.Object(ofProcess), says: ProcessStatus },
  output: { args: Type.Object(ofProcess), says: Type.Union([OutputOpened, OutputItem]) },
  /** The end of its output so far. */
  tail: { args: Type.Object(ofProcess), says: Tail },
  stdin: { args: Type.Object({ ...ofProcess, data_b64: Type.String(), eof: Type.Boolean() }), says: Written },
  kill: { args: Type.Object({ ...ofProcess, signal: Type.String() }), says: Ok },
  resize: { args: Type.Object({ ...ofProcess, rows: count, cols: count }), says: Ok },
  /** Kills the processes of an earlier guest. */
  bury: { args: Type.Object({ pids: Type.Array(Type.Integer()) }), says: Ok },
};

// ---- files

export const FileOpened = Type.Object({ size_bytes: count });
export const FileInfo = Type.Object({
  name: path,
  path,
  size_bytes: count,
  is_dir: Type.Boolean(),
  mod_time: Type.String({ maxLength: 40, pattern: '^[+0-9T:.Z-]+$' }),
  mode: Type.String({ maxLength: 16 }),
});
export type FileInfo = Static<typeof FileInfo>;
export const FileInfos = Type.Array(FileInfo, { maxItems: 1000 });

const ofPath = Type.Object({ path });
/** The destination is sent along with the bytes, so these requests have no arguments. */
const Nothing = Type.Object({});

const files = {
  read: { args: ofPath, says: FileOpened },
  write: { args: Type.Object({ path, mode: orNull(Type.String()) }), says: Done },
  upload: { args: Nothing, says: Done },
  list: { args: ofPath, says: FileInfos },
  info: { args: ofPath, says: FileInfo },
  create_directory: { args: Type.Object({ path, mode: orNull(Type.String()) }), says: Done },
  delete_file: { args: ofPath, says: Done },
  delete_directory: { args: ofPath, says: Done },
  move: { args: Type.Object({ src_path: path, dest_path: path }), says: Done },
  set_permissions: {
    args: Type.Object({ path, mode: Type.String(), owner: orNull(Type.String()), group: orNull(Type.String()) }),
    says: Done,
  },
  zip: { args: ofPath, says: Done },
  unzip: { args: Nothing, says: Done },
  pack: { args: Type.Object({ path, level: Type.String() }), says: Done },
  unpack: { args: Nothing, says: Done },
};

/** The service's messages during an upload, between bytes. */
const UploadWord = Type.Union([Type.Object({ file: Type.String() }), Type.Object({ dest: Type.String(), path })]);
const ArchiveWord = Type.Union([Type.Object({ dest_path: path }), Type.Object({ strip_components: count })]);
type UploadWord = Static<typeof UploadWord>;
type ArchiveWord = Static<typeof ArchiveWord>;

// ---- watches

export const eventTypes = ['CREATE', 'WRITE', 'DELETE', 'RENAME', 'OVERFLOW'] as const;
const WatchStarted = Type.Object({ watch_id: Type.String({ pattern: '^[a-z0-9]{24}$' }) });
export const WatchEvent = Type.Object({
  type: Type.Union(eventTypes.map((type) => Type.Literal(type))),
  path,
  name: Type.Optional(path),
  is_dir: Type.Optional(Type.Boolean()),
  cookie: Type.Optional(count),
  dropped: Type.Optional(count),
});
export type WatchEvent = Static<typeof WatchEvent>;
const ofWatch = Type.Object({ watch_id: Type.String() });

const watches = {
  watch: { args: Type.Object({ path, recursive: Type.Boolean() }), says: WatchStarted },
  unwatch: { args: ofWatch, says: Done },
  watch_events: { args: ofWatch, says: Type.Union([Done, WatchEvent]) },
};

// ---- code

export const Outcome = Type.Object({
  success: Type.Boolean(),
  error: Type.Optional(Type.String({ maxLength: 100_000 })),
});
/** The number of bytes that follow. */
export const ResultBytes = Type.Object({ bytes: Type.Integer({ minimum: 0, maximum: MOST_RESULT }) });
export const PrintedBytes = Type.Object({ bytes: Type.Integer({ minimum: 0, maximum: MOST_PRINTED }) });

const code = {
  execute: {
    args: Type.Object({ code: Type.String(), timeout_sec: Type.Number() }),
    says: Type.Union([Outcome, ResultBytes, PrintedBytes]),
  },
};

// ---- WebDriver

const port = Type.Integer({ minimum: 1, maximum: 65_535 });
export const DriverReady = Type.Object({ pid, port, debugger_port: port });

const driver = {
  /** Runs a chromedriver for as long as the stream is open; it reaches the browser at the debugger's port. */
  driver: { args: Type.Object({ program: path }), says: Type.Union([DriverReady, Exited]) },
  /** A connection to a port inside the session: bytes both ways. */
  dial: { args: Type.Object({ port }), says: Done },
};

export const protocol = {
  /** Whether the guest responds. */
  ping: { args: Nothing, says: Done },
  ...processes,
  ...files,
  ...watches,
  ...code,
  ...driver,
};

export type Question = keyof typeof protocol;
export type Args<Q extends Question> = Static<(typeof protocol)[Q]['args']>;
export type Said<Q extends Question> = Static<(typeof protocol)[Q]['says']>;
