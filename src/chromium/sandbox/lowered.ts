import type { Limits } from './cgroup-limits.ts';

/**
 * Limits below the service's own for every process of a session, wherever it is started. A session cannot raise them again:
 *
 * - When memory runs out, the kernel ends a session's process before the service or its database. As an ordinary user a session may undo
 *   the adjustment made here, but not go below the service's own.
 * - No core dumps: the host would write them, at the size of a browser. A bound on descriptors, since the kernel's number is limited.
 * - Where no control group counts processes: RLIMIT_NPROC. It counts the processes of one uid, and under root every session has its own. Since
 *   Linux 5.14 it counts in each user namespace separately, of which an ordinary user's session has two.
 * - Where no control group divides the processor: a lower priority, which applies to the disk too.
 * - A bound on the size of a file. A write beyond it fails with EFBIG and does not kill the process.
 *
 * A shell runs this before it executes the command; the numbers are in its environment.
 */
export const LOWER = `
read -r adjust </proc/$$/oom_score_adj && adjust=$((adjust + 300)) && [ "$adjust" -le 1000 ] || adjust=1000
echo "$adjust" >/proc/$$/oom_score_adj
ulimit -c 0
ulimit -n 32768 2>/dev/null
[ -z "$CORRAL_NICE" ] || renice -n "$CORRAL_NICE" -p $$ >/dev/null 2>&1
[ -z "$CORRAL_PIDS" ] || ulimit -p "$CORRAL_PIDS" 2>/dev/null || ulimit -u "$CORRAL_PIDS"
[ -z "$CORRAL_FILE_BLOCKS" ] || { trap '' XFSZ; ulimit -f "$CORRAL_FILE_BLOCKS"; }
unset CORRAL_NICE CORRAL_PIDS CORRAL_FILE_BLOCKS
`;

const NICE = '5';

/** The environment for LOWER. Limits that control groups enforce already are left out. */
export function lowered(bounded: readonly string[], { pids, fileBytes }: Limits): Record<string, string> {
  return {
    ...(pids === undefined || bounded.includes('pids') ? {} : { CORRAL_PIDS: String(pids) }),
    ...(fileBytes === undefined ? {} : { CORRAL_FILE_BLOCKS: String(Math.ceil(fileBytes / 512)) }),
    ...(bounded.includes('cpu') ? {} : { CORRAL_NICE: NICE }),
  };
}
