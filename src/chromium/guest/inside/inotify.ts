import { spawn, type ChildProcess } from 'node:child_process';
import { Fault } from './fault.ts';

/** What the kernel reports of a watched directory. */
export interface KernelEvent {
  mask: number;
  /** The two halves of a rename have the same one. Of Q_OVERFLOW, which every listener receives: its number. */
  cookie: number;
  /** The entry of the directory; empty if the event is about the directory itself. */
  name: string;
}

export const IN = {
  MODIFY: 0x2,
  MOVED_FROM: 0x40,
  MOVED_TO: 0x80,
  CREATE: 0x100,
  DELETE: 0x200,
  DELETE_SELF: 0x400,
  MOVE_SELF: 0x800,
  Q_OVERFLOW: 0x4000,
  IGNORED: 0x8000,
  ONLYDIR: 0x1000000,
  DONT_FOLLOW: 0x2000000,
  EXCL_UNLINK: 0x4000000,
  ISDIR: 0x40000000,
} as const;

const WATCHED =
  IN.MODIFY |
  IN.MOVED_FROM |
  IN.MOVED_TO |
  IN.CREATE |
  IN.DELETE |
  IN.DELETE_SELF |
  IN.MOVE_SELF |
  IN.ONLYDIR |
  IN.EXCL_UNLINK;

/** The numbers of inotify_init1, inotify_add_watch and inotify_rm_watch. */
const CALLS: Partial<Record<NodeJS.Architecture, number[]>> = { x64: [294, 254, 255], arm64: [26, 27, 28] };
const PERL = '/usr/bin/perl';
const ENOSPC = 28;

/**
 * Reads the reports of the kernel immediately, and keeps up to 16 MiB while this program is busy: the kernel keeps 16,384 events.
 * Commands are an operation, a number and a length before their data; answers are a kind and a length before theirs.
 */
const PROGRAM = String.raw`
my ($init, $add, $rm) = map { $_ + 0 } @ARGV;
my $fd = syscall($init, 02004000);
exit 3 if $fd < 0;
open(my $events, '<&=' . $fd) or exit 4;
binmode $_ for *STDIN, *STDOUT, $events;
fcntl(STDOUT, 4, 04000) or exit 5;
my ($in, $out, @asked) = ('', 'H' . pack('V', 0));
for (;;) {
  my ($r, $w) = ('', '');
  vec($r, 0, 1) = 1;
  vec($r, $fd, 1) = 1 if length($out) < 1 << 24;
  vec($w, 1, 1) = 1 if length $out;
  next if select($r, $w, undef, undef) < 1;
  if (vec($r, 0, 1)) {
    exit 0 unless sysread(STDIN, $in, 65536, length $in);
    while (length($in) >= 9) {
      my ($what, $seq, $length) = unpack('a V V', $in);
      last if length($in) < 9 + $length;
      my $data = substr($in, 9, $length);
      substr($in, 0, 9 + $length, '');
      if ($what eq 'r') { syscall($rm, $fd, $data + 0); next }
      if ($what eq 's') { push @asked, $seq; next }
      my $mask = unpack('V', $data) + 0;
      my $path = substr($data, 4);
      my $wd = syscall($add, $fd, $path, $mask);
      $out .= 'A' . pack('V V l<', 8, $seq, $wd < 0 ? -$! : $wd);
    }
  }
  if (@asked || vec($r, $fd, 1)) {
    while (length($out) < 1 << 24 and my $read = sysread($events, my $some, 65536)) {
      $out .= 'E' . pack('V', $read) . $some;
      last unless @asked;
    }
    $out .= 'A' . pack('V V l<', 8, shift @asked, 0) while @asked;
  }
  if (length $out) {
    my $written = syswrite(STDOUT, $out, 65536);
    if (defined $written) { substr($out, 0, $written, '') }
    elsif ($! != 11 && $! != 4) { exit 6 }
  }
}
`;

export type Listener = (event: KernelEvent) => void;

/** One directory, watched for one listener. */
export interface KernelWatched {
  readonly wd: number;
  close(): void;
}

/**
 * The kernel's own watches. Node's fs.watch reports neither the kind of a change nor the two halves of a rename, and a native module
 * would have to be built for each machine; perl is part of every Debian and Ubuntu and makes system calls. One process for all watches of
 * the session, since a user has 128 instances of inotify. Undefined where it does not run.
 */
export async function openInotify(): Promise<{ inotify: Inotify; close(): void } | undefined> {
  const one = (shared ??= { users: 0, started: Inotify.start() });
  one.users++;
  const inotify = await one.started;
  if (!inotify && shared === one) shared = undefined;
  if (!inotify) return undefined;
  void inotify.ended.then(() => shared === one && (shared = undefined));
  return {
    inotify,
    close() {
      if (--one.users > 0) return;
      if (shared === one) shared = undefined;
      inotify.end();
    },
  };
}
let shared: { users: number; started: Promise<Inotify | undefined> } | undefined;

export class Inotify {
  /** Resolves when the process has exited: there are no more events. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #listeners = new Map<number, Set<Listener>>();
  readonly #asked = new Map<number, { listener: Listener | undefined; answer: (result: number) => void }>();
  /** Watches without a listener. They are removed when no question is under way: its answer may be one of them. */
  readonly #unused = new Set<number>();
  #count = 0;
  #overflows = 0;
  #unread: Buffer = Buffer.alloc(0);
  #ready: ((runs: boolean) => void) | undefined;
  #over = false;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.ended = new Promise((resolve) => {
      child.once('error', () => resolve());
      child.once('close', () => resolve());
    });
    void this.ended.then(() => {
      this.#over = true;
      this.#ready?.(false);
      for (const { answer } of this.#asked.values()) answer(-1);
      this.#asked.clear();
    });
    child.stdin!.on('error', () => {}); // `close` follows
    child.stdout!.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  static async start(): Promise<Inotify | undefined> {
    const calls = CALLS[process.arch];
    if (!calls) return undefined;
    const child = spawn(PERL, ['-e', PROGRAM, ...calls.map(String)], { stdio: ['pipe', 'pipe', 'ignore'], env: {} });
    const inotify = new Inotify(child);
    const runs = await new Promise<boolean>((resolve) => (inotify.#ready = resolve));
    inotify.#ready = undefined;
    return runs ? inotify : undefined;
  }

  /** Watches a directory. Its events are reported from the moment at which the kernel has the watch. */
  async watch(path: string, listener: Listener, { follow = false } = {}): Promise<KernelWatched> {
    const seq = this.#count++ >>> 0;
    const data = Buffer.concat([Buffer.alloc(4), Buffer.from(path)]);
    data.writeUInt32LE(WATCHED | (follow ? 0 : IN.DONT_FOLLOW), 0);
    const wd = await new Promise<number>((answer) => {
      this.#asked.set(seq, { listener, answer });
      this.#send('a', seq, data);
    });
    if (wd === -ENOSPC) throw new Fault('too_many_watches', 'The kernel watches as many directories as it may.');
    if (wd < 0) throw Object.assign(new Error(`'${path}' cannot be watched (${-wd}).`), { errno: wd });
    return { wd, close: () => this.#leave(wd, listener) };
  }

  /** Resolves when all current events of the kernel were reported. */
  async caughtUp(): Promise<void> {
    if (this.#over) return;
    const seq = this.#count++ >>> 0;
    await new Promise<number>((answer) => {
      this.#asked.set(seq, { listener: undefined, answer });
      this.#send('s', seq, Buffer.alloc(0));
    });
  }

  end() {
    this.#child.stdin!.end();
  }

  #leave(wd: number, listener: Listener) {
    const those = this.#listeners.get(wd);
    if (!those?.delete(listener) || those.size > 0) return;
    this.#unused.add(wd);
    this.#removeUnused();
  }

  #removeUnused() {
    if (this.#asked.size > 0) return;
    for (const wd of this.#unused) {
      this.#unused.delete(wd);
      if (this.#listeners.get(wd)?.size !== 0) continue;
      this.#listeners.delete(wd);
      this.#send('r', 0, Buffer.from(String(wd)));
    }
  }

  #send(what: string, seq: number, data: Buffer) {
    const head = Buffer.alloc(9);
    head.write(what);
    head.writeUInt32LE(seq, 1);
    head.writeUInt32LE(data.length, 5);
    this.#child.stdin!.write(Buffer.concat([head, data]));
  }

  #take(chunk: Buffer) {
    const bytes = this.#unread.length > 0 ? Buffer.concat([this.#unread, chunk]) : chunk;
    let at = 0;
    while (bytes.length - at >= 5) {
      const length = bytes.readUInt32LE(at + 1);
      if (bytes.length - at < 5 + length) break;
      const payload = bytes.subarray(at + 5, at + 5 + length);
      const kind = String.fromCharCode(bytes[at]!);
      if (kind === 'H') this.#ready?.(true);
      else if (kind === 'A') this.#answer(payload.readUInt32LE(0), payload.readInt32LE(4));
      else this.#dispatch(payload);
      at += 5 + length;
    }
    this.#unread = bytes.subarray(at);
  }

  /** The listener is there before the first event of its watch, which follows the answer. */
  #answer(seq: number, wd: number) {
    const asked = this.#asked.get(seq);
    this.#asked.delete(seq);
    if (!asked) return;
    if (wd >= 0 && asked.listener) {
      const those = this.#listeners.get(wd) ?? new Set();
      this.#listeners.set(wd, those.add(asked.listener));
    }
    asked.answer(wd);
    this.#removeUnused();
  }

  #dispatch(payload: Buffer) {
    for (let at = 0; at + 16 <= payload.length;) {
      const wd = payload.readInt32LE(at);
      const mask = payload.readUInt32LE(at + 4);
      const cookie = wd === -1 ? ++this.#overflows : payload.readUInt32LE(at + 8);
      const length = payload.readUInt32LE(at + 12);
      const padded = payload.subarray(at + 16, at + 16 + length);
      const end = padded.indexOf(0);
      const name = padded.subarray(0, end < 0 ? length : end).toString();
      at += 16 + length;
      const those =
        wd === -1 ? new Set([...this.#listeners.values()].flatMap((some) => [...some])) : this.#listeners.get(wd);
      for (const listener of those ?? []) listener({ mask, cookie, name });
      if (mask & IN.IGNORED) this.#listeners.delete(wd); // the directory is removed, and the watch with it
    }
  }
}
