import type { Limits } from './cgroup-limits.ts';

/**
 * What every process of a session is given less of than the service has, wherever it is started, and cannot raise again:
 *
 * - When memory runs out, the kernel ends something of a session before the service or its database. As an ordinary user a session may take
 *   back what was added here, never more.
 * - No core dumps: they would be written by the host, at the size of a browser. A bound on descriptors, of which the kernel has so many.
 * - Where no control group counts processes: RLIMIT_NPROC. It counts the processes of one uid, and under root every session has its own. Since
 *   Linux 5.14 it counts in each user namespace by itself, of which an ordinary user's session has two.
 * - Where no control group shares the processor out: a lower priority, which is the disk's as well.
 * - A bound on the size of a file. Who writes beyond it is told so (EFBIG) and not killed.
 *
 * A shell runs this before it becomes something else; the numbers come in its environment.
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

/** The environment for LOWER, by what control groups bound already. */
export function lowered(bounded: readonly string[], { pids, fileBytes }: Limits): Record<string, string> {
  return {
    ...(pids === undefined || bounded.includes('pids') ? {} : { CORRAL_PIDS: String(pids) }),
    ...(fileBytes === undefined ? {} : { CORRAL_FILE_BLOCKS: String(Math.ceil(fileBytes / 512)) }),
    ...(bounded.includes('cpu') ? {} : { CORRAL_NICE: NICE }),
  };
}
