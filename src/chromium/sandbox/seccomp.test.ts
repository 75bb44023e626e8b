import { describe, expect, test } from 'vitest';
import { architectures, assemble, type Filter } from './seccomp.ts';

const ALLOW = 'allow';
const EPERM = 'errno 1';
const ENOSYS = 'errno 38';
const EOPNOTSUPP = 'errno 95';
const EAFNOSUPPORT = 'errno 97';

/** What the kernel does with a filter: runs it on the number, the architecture and the arguments of a call. */
function judge(program: Buffer, audit: number, number: number, args: number[] = []): string {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(audit >>> 0, 4);
  args.forEach((arg, index) => data.writeUInt32LE(arg >>> 0, 16 + 8 * index));
  let word = 0;
  for (let at = 0; at < program.length / 8; at++) {
    const code = program.readUInt16LE(8 * at);
    const [whenTrue, whenFalse] = [program.readUInt8(8 * at + 2), program.readUInt8(8 * at + 3)];
    const value = program.readUInt32LE(8 * at + 4);
    const jump = (taken: boolean) => (at += taken ? whenTrue : whenFalse);
    if (code === 0x20) word = data.readUInt32LE(value);
    else if (code === 0x15) jump(word === value);
    else if (code === 0x35) jump(word >= value);
    else if (code === 0x45) jump((word & value) !== 0);
    else if (code === 0x06) {
      if (value === 0x7fff0000) return ALLOW;
      expect(value >>> 16, 'an errno').toBe(5);
      return `errno ${value & 0xffff}`;
    } else throw new Error(`There is no instruction ${code}.`);
  }
  throw new Error('The program ends without an answer.');
}

/** A few numbers a program cannot live without: read, write, close, mmap, execve, futex, and openat. */
const ORDINARY: Record<string, number[]> = { x64: [0, 1, 3, 9, 59, 202, 257], arm64: [63, 64, 57, 222, 221, 98, 56] };

describe.each(['x64', 'arm64'])('on %s', (arch) => {
  const { audit, numbers } = architectures[arch]!;
  const ask = (filter: Filter, name: string | number, ...args: number[]) =>
    judge(assemble(filter, arch)!, audit, typeof name === 'string' ? numbers[name]! : name, args);

  describe.each(['browser', 'guest', 'helper'] as const)('the filter of a %s', (filter) => {
    test('lets ordinary calls through and answers every listed one', () => {
      for (const number of ORDINARY[arch]!) expect(ask(filter, number)).toBe(ALLOW);
      for (const name of Object.keys(numbers)) {
        if (['socket', 'socketpair', 'clone', 'unshare', 'ioctl'].includes(name)) continue;
        const unknown = name === 'clone3' || name.startsWith('io_uring');
        expect(ask(filter, name), name).toBe(name === 'fallocate' ? EOPNOTSUPP : unknown ? ENOSYS : EPERM);
      }
    });

    test('takes nothing of a disk without writing it', () => {
      for (const request of [0x40305828, 0x4030582a, 0x40305839, 0x401c5820])
        expect(ask(filter, 'ioctl', 3, request)).toBe(EOPNOTSUPP);
    });

    test('knows four families of sockets, and of netlink only routes', () => {
      for (let family = 0; family < 64; family++) {
        const expected = [1, 2, 10, 16].includes(family) ? ALLOW : EAFNOSUPPORT;
        expect(ask(filter, 'socket', family, 1, 0), `family ${family}`).toBe(expected);
        expect(ask(filter, 'socketpair', family), `family ${family}`).toBe(family === 1 ? ALLOW : EAFNOSUPPORT);
      }
      for (let protocol = 1; protocol < 32; protocol++)
        expect(ask(filter, 'socket', 16, 3, protocol), `netlink ${protocol}`).toBe(EAFNOSUPPORT);
    });

    test('starts threads and processes, but types into no terminal', () => {
      expect(ask(filter, 'clone', 0x3d0f00)).toBe(ALLOW); // a thread
      expect(ask(filter, 'clone', 0x1200011)).toBe(ALLOW); // fork
      expect(ask(filter, 'clone', 0x80 | 17)).toBe(ALLOW); // the low byte is a signal
      expect(ask(filter, 'unshare', 0x600)).toBe(ALLOW); // files and directories
      expect(ask(filter, 'ioctl', 0, 0x5401)).toBe(ALLOW);
      for (const request of [0x5412, 0x541c]) expect(ask(filter, 'ioctl', 0, request)).toBe(EPERM);
    });

    test('refuses the calls of other ABIs', () => {
      const program = assemble(filter, arch)!;
      for (const other of [0x40000003, 0x40000028, arch === 'x64' ? 0xc00000b7 : 0xc000003e])
        expect(judge(program, other, 0)).toBe(ENOSYS);
      if (arch === 'x64') for (const number of [0, 59, 520]) expect(ask(filter, 0x40000000 + number)).toBe(ENOSYS);
    });
  });

  test('namespaces are made by Chromium as it needs them, by a guest for root alone, and by no other process', () => {
    const flags = { time: 0x80, mnt: 0x20000, cgroup: 0x2000000, uts: 0x4000000, ipc: 0x8000000 };
    const [user, pid, net] = [0x10000000, 0x20000000, 0x40000000];
    for (const filter of ['browser', 'guest', 'helper'] as const) {
      for (const [name, flag] of Object.entries(flags)) {
        expect(ask(filter, 'unshare', flag), name).toBe(EPERM);
        expect(ask(filter, 'unshare', flag | user), name).toBe(EPERM);
        if (name !== 'time') expect(ask(filter, 'clone', flag | 17), name).toBe(EPERM);
      }
    }
    for (const call of ['unshare', 'clone']) {
      expect(ask('browser', call, user | pid | net)).toBe(ALLOW);
      for (const flag of [pid, net, user | pid, user | net]) expect(ask('guest', call, flag)).toBe(EPERM);
      for (const flag of [user, pid, net]) expect(ask('helper', call, flag)).toBe(EPERM);
    }
    expect(ask('guest', 'unshare', user)).toBe(ALLOW);
    expect(ask('guest', 'clone', user | 17)).toBe(EPERM);
  });
});

test('a machine with unknown numbers has no filter', () => {
  expect(assemble('browser', 'riscv64')).toBeUndefined();
});
