import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { sessionsBytes } from '../../lib/machine-memory.ts';

/** Limits of one session. A missing field means no limit. */
export interface Limits {
  readonly memoryBytes?: number | undefined;
  /** Processes and threads together. */
  readonly pids?: number | undefined;
  /** Cores. */
  readonly cpus?: number | undefined;
  /** Size of one file. Enforced by an rlimit, not by a control group. */
  readonly fileBytes?: number | undefined;
}

/** The controllers in use. The freezer limits nothing, but is a controller under version 1. */
export const CONTROLLERS = ['memory', 'pids', 'freezer', 'cpu', 'io'] as const;
export type Controller = (typeof CONTROLLERS)[number];
export type Places = Partial<Record<Controller, string>>;

const PERIOD_US = 100_000;

/**
 * The files of a session's group that hold its limits, and their values. `memory.oom.group` stays off: the kernel ends the largest process, and
 * the session continues.
 */
export function limitFiles(version: 'v1' | 'v2', at: Places, { memoryBytes, pids, cpus }: Limits): Setting[] {
  const quota = cpus === undefined ? undefined : Math.max(1000, Math.round(cpus * PERIOD_US));
  const v1 = version === 'v1';
  return [
    { file: file(at.memory, v1 ? 'memory.limit_in_bytes' : 'memory.max'), value: memoryBytes },
    // Swap counts as memory: a session that swaps slows the disk down for all sessions.
    v1
      ? { file: file(at.memory, 'memory.memsw.limit_in_bytes'), value: memoryBytes, mayBeMissing: true }
      : { file: file(at.memory, 'memory.swap.max'), value: memoryBytes && 0, mayBeMissing: true },
    { file: file(at.pids, 'pids.max'), value: pids },
    v1
      ? { file: file(at.cpu, 'cpu.cfs_quota_us'), value: quota }
      : { file: file(at.cpu, 'cpu.max'), value: quota && `${quota} ${PERIOD_US}` },
  ].flatMap(given);
}

/**
 * The same for the group that holds all sessions. All sessions together must leave memory for the service and its
 * database, a quarter of the machine's process ids, and a share of the disk. Within the group every session has the same weight, the
 * kernel's default.
 *
 * Under version 2 the group's share of the processor is the default, equal to that of the slice with the service in it. Under version 1 the
 * service's threads are siblings of the group, each with a weight of 1024 on its core, and the group's weight is divided by the
 * cores it runs on: with 2048 for each core, a service thread gets at least a third of its core, however many processes sessions run.
 */
export function shareFiles(version: 'v1' | 'v2', at: Places): Setting[] {
  const v1 = version === 'v1';
  return [
    { file: file(at.memory, v1 ? 'memory.limit_in_bytes' : 'memory.max'), value: sessionsBytes() },
    { file: file(at.pids, 'pids.max'), value: Math.floor(mostPids() * 0.75) },
    { file: v1 ? file(at.cpu, 'cpu.shares') : undefined, value: Math.min(262_144, 2048 * availableParallelism()) },
    { file: file(at.io, v1 ? 'blkio.bfq.weight' : 'io.weight'), value: v1 ? 50 : 'default 50', mayBeMissing: true },
  ].flatMap(given);
}

interface Setting {
  readonly file: string;
  readonly value: string;
  readonly mayBeMissing: boolean;
}

const file = (place: string | undefined, name: string) => (place === undefined ? undefined : join(place, name));

function given(setting: {
  file: string | undefined;
  value: string | number | undefined;
  mayBeMissing?: boolean;
}): Setting[] {
  const { file, value, mayBeMissing = false } = setting;
  return file === undefined || value === undefined ? [] : [{ file, value: String(value), mayBeMissing }];
}

/** Opens write-only, since some kernel files cannot be read, and does not create a missing file: a missing controller is ENOENT. */
export function write(path: string, value: string): void {
  const descriptor = openSync(path, constants.O_WRONLY);
  try {
    writeSync(descriptor, value);
  } finally {
    closeSync(descriptor);
  }
}

export function put({ file, value, mayBeMissing }: Setting): void {
  try {
    write(file, value);
  } catch (error) {
    if (!mayBeMissing || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function mostPids(): number {
  try {
    return Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) || 32_768;
  } catch {
    return 32_768;
  }
}
