import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The system calls a session may make, as classic BPF programs that bubblewrap installs (`--seccomp`). A filter lists forbidden calls, not
 * allowed ones, because sessions also run programs of their users. It cannot be removed again, and child processes inherit it. Tracing stays
 * allowed, for debuggers. The programs are assembled here, because a library for them would be a native one.
 *
 * There are three because the need for user namespaces differs: Chromium's own sandbox creates one together with pid and network
 * namespaces; a guest command that runs as root is root of one user namespace and of nothing else; other programs need none.
 */
export type Filter = 'browser' | 'guest' | 'helper';

interface Architecture {
  /** AUDIT_ARCH_*: the kernel's name for the calling convention of a system call. */
  readonly audit: number;
  readonly numbers: Readonly<Record<string, number>>;
  /** Calls from this number on are of another ABI of the same architecture: x32. */
  readonly foreignFrom?: number;
}

const EPERM = 1;
const ENOSYS = 38;
const EOPNOTSUPP = 95;
const EAFNOSUPPORT = 97;

/** Since Linux 5.1 new calls have the same number on every architecture. */
const EVERYWHERE = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  mount_setattr: 442,
  quotactl_fd: 443,
  statmount: 457,
  listmount: 458,
  open_tree_attr: 467,
};

// prettier-ignore
export const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    foreignFrom: 0x40000000,
    numbers: {
      ...EVERYWHERE,
      fallocate: 285, ioctl: 16, socket: 41, socketpair: 53, clone: 56, unshare: 272,
      keyctl: 250, add_key: 248, request_key: 249, bpf: 321, userfaultfd: 323, perf_event_open: 298,
      kexec_load: 246, kexec_file_load: 320, init_module: 175, finit_module: 313, delete_module: 176,
      mount: 165, umount2: 166, pivot_root: 155, name_to_handle_at: 303, open_by_handle_at: 304, setns: 308,
      swapon: 167, swapoff: 168, reboot: 169, acct: 163, quotactl: 179, fanotify_init: 300,
      settimeofday: 164, clock_settime: 227, clock_adjtime: 305, adjtimex: 159, syslog: 103, vhangup: 153,
      lookup_dcookie: 212, move_pages: 279, migrate_pages: 256, nfsservctl: 180,
      iopl: 172, ioperm: 173, modify_ldt: 154, uselib: 134, ustat: 136, sysfs: 139, _sysctl: 156,
      create_module: 174, get_kernel_syms: 177, query_module: 178,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    numbers: {
      ...EVERYWHERE,
      fallocate: 47, ioctl: 29, socket: 198, socketpair: 199, clone: 220, unshare: 97,
      keyctl: 219, add_key: 217, request_key: 218, bpf: 280, userfaultfd: 282, perf_event_open: 241,
      kexec_load: 104, kexec_file_load: 294, init_module: 105, finit_module: 273, delete_module: 106,
      mount: 40, umount2: 39, pivot_root: 41, name_to_handle_at: 264, open_by_handle_at: 265, setns: 268,
      swapon: 224, swapoff: 225, reboot: 142, acct: 89, quotactl: 60, fanotify_init: 262,
      settimeofday: 170, clock_settime: 112, clock_adjtime: 266, adjtimex: 171, syslog: 116, vhangup: 58,
      lookup_dcookie: 18, move_pages: 239, migrate_pages: 238, nfsservctl: 42,
    },
  },
};

/**
 * EXAMINED: calls filtered by their arguments. UNKNOWN: answered with ENOSYS, so that callers fall back to the older call: a filter cannot
 * read the flags that clone3 points to.
 */
const EXAMINED = new Set(['socket', 'socketpair', 'clone', 'unshare', 'ioctl']);
const UNKNOWN = new Set(['clone3', 'io_uring_setup', 'io_uring_enter', 'io_uring_register']);

const NEW = {
  time: 0x80,
  mount: 0x20000,
  cgroup: 0x2000000,
  uts: 0x4000000,
  ipc: 0x8000000,
  user: 0x10000000,
  pid: 0x20000000,
  net: 0x40000000,
};
const EVERY_NAMESPACE = Object.values(NEW).reduce((all, flag) => all | flag);
const ALLOWED_NAMESPACES: Record<Filter, number> = {
  browser: NEW.user | NEW.pid | NEW.net,
  guest: NEW.user,
  helper: 0,
};

const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16 };
const NETLINK_ROUTE = 0;
/**
 * fallocate can fill a disk of any size in one call, faster than the disk guard can measure. It is answered as on a file system without
 * support for it, so that callers write zeros instead.
 */
const REFUSALS: Readonly<Record<string, number>> = { fallocate: EOPNOTSUPP };
/** ioctls that preallocate too: RESVSP, RESVSP64, ZERO_RANGE, and FSSETXATTR, which has hints that make one byte take a gigabyte on xfs. */
const PREALLOCATION = [0x40305828, 0x4030582a, 0x40305839, 0x401c5820];
/** ioctls that insert input into a terminal as if it was typed. */
const TERMINAL_INPUT = [0x5412, 0x541c];

interface Instruction {
  readonly code: number;
  readonly whenTrue?: number;
  readonly whenFalse?: number;
  readonly value: number;
}

/** Offsets in `struct seccomp_data`: number, architecture, and the low half of each argument (both architectures are little-endian). */
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (index: number) => 16 + 8 * index;

const load = (offset: number): Instruction => ({ code: 0x20, value: offset });
const answer = (value: number): Instruction => ({ code: 0x06, value });
const allow = answer(0x7fff0000);
const refuse = (errno: number) => answer(0x00050000 | errno);
/** Runs `then` if the loaded word matches (is equal, is at least as large, has one of the bits), and skips it otherwise. */
const when = (code: number) => (value: number, then: readonly Instruction[]) => [
  { code, whenTrue: 0, whenFalse: then.length, value },
  ...then,
];
const ifEqual = when(0x15);
const ifAtLeast = when(0x35);
const ifAnyOf = when(0x45);

/** The filter as bubblewrap reads it; undefined on an architecture with unknown system call numbers. */
export function assemble(filter: Filter, arch: string = process.arch): Buffer | undefined {
  const machine = architectures[arch];
  if (!machine) return undefined;
  const { audit, numbers, foreignFrom } = machine;
  const forbidden = (EVERY_NAMESPACE & ~ALLOWED_NAMESPACES[filter]) >>> 0;
  const program: Instruction[] = [load(ARCHITECTURE), { code: 0x15, whenTrue: 1, whenFalse: 0, value: audit }];
  program.push(refuse(ENOSYS), load(NUMBER));
  if (foreignFrom !== undefined) program.push(...ifAtLeast(foreignFrom, [refuse(ENOSYS)]));

  for (const [name, number] of Object.entries(numbers)) {
    if (!EXAMINED.has(name))
      program.push(...ifEqual(number, [refuse(REFUSALS[name] ?? (UNKNOWN.has(name) ? ENOSYS : EPERM))]));
  }
  const examine = (name: string, argumentIndex: number, rules: readonly Instruction[]) =>
    program.push(...ifEqual(numbers[name]!, [load(argument(argumentIndex)), ...rules]));

  const route = [load(argument(2)), ...ifEqual(NETLINK_ROUTE, [allow]), refuse(EAFNOSUPPORT)];
  const families = [AF.unix, AF.inet, AF.inet6].flatMap((family) => ifEqual(family, [allow]));
  examine('socket', 0, [...families, ...ifEqual(AF.netlink, route), refuse(EAFNOSUPPORT)]);
  examine('socketpair', 0, [...ifEqual(AF.unix, [allow]), refuse(EAFNOSUPPORT)]);
  examine('unshare', 0, [...ifAnyOf(forbidden, [refuse(EPERM)]), allow]);
  // The lowest byte of clone's flags is the exit signal. Guest commands that run as root create their namespace by unshare, not clone.
  const forClone = (forbidden | (filter === 'guest' ? NEW.user : 0)) & ~0xff;
  examine('clone', 0, [...ifAnyOf(forClone >>> 0, [refuse(EPERM)]), allow]);
  const refused = [
    ...TERMINAL_INPUT.flatMap((request) => ifEqual(request, [refuse(EPERM)])),
    ...PREALLOCATION.flatMap((request) => ifEqual(request, [refuse(EOPNOTSUPP)])),
  ];
  examine('ioctl', 1, [...refused, allow]);
  program.push(allow);
  return encode(program);
}

/** A sequence of `struct sock_filter`. */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(8 * program.length);
  program.forEach(({ code, whenTrue = 0, whenFalse = 0, value }, index) => {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.writeUInt8(whenTrue, 8 * index + 2);
    bytes.writeUInt8(whenFalse, 8 * index + 3);
    bytes.writeUInt32LE(value, 8 * index + 4);
  });
  return bytes;
}

export const canFilter = () => architectures[process.arch] !== undefined;

const held = new Map<Filter, number>();

/**
 * A path at which the filter can be read while this process lives. Only a process with the same uid that has not yet entered another
 * user namespace can read it. The file itself is already unlinked.
 */
export function filterPath(filter: Filter): string | undefined {
  const program = assemble(filter);
  if (!program) return undefined;
  let descriptor = held.get(filter);
  if (descriptor === undefined) {
    const dir = mkdtempSync(join(tmpdir(), 'corral-filter-'));
    try {
      writeFileSync(join(dir, filter), program, { mode: 0o400 });
      descriptor = openSync(join(dir, filter), 'r');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
    held.set(filter, descriptor);
  }
  return `/proc/${process.pid}/fd/${descriptor}`;
}

/**
 * Starts a program that bubblewrap filters: `start` gets a descriptor to pass to the child, and bubblewrap's arguments. `number` is the
 * descriptor's number in the child. Each start reads the filter from its beginning, so each opens its own descriptor.
 */
export function withFilter<T>(filter: Filter, number: number, start: (descriptor: number[], words: string[]) => T): T {
  const path = filterPath(filter);
  if (path === undefined) return start([], []);
  const descriptor = openSync(path, 'r');
  try {
    return start([descriptor], ['--seccomp', String(number)]);
  } finally {
    closeSync(descriptor);
  }
}
