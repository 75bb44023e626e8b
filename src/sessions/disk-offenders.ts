/** How long a project waits after the first of its sessions, builds or workers was ended for the disk. Each further one doubles it. */
const firstMs = 10_000;
const longestMs = 10 * 60_000;
/** A project is forgotten when its last wait has been over for this long. */
const calmMs = 10 * 60_000;
/** More are not remembered: the one with the earliest offence is forgotten. */
const mostKnown = 1000;

/**
 * Projects that had the most on a disk that was short. They wait before the next session, build or invocation starts, so that on a small
 * disk one project cannot have the others refused again and again. Each node remembers its own.
 */
export function diskOffenders(now: () => number = () => performance.now()) {
  const known = new Map<string, { times: number; until: number }>();

  return {
    /** A session, a build or a worker of the project was ended. */
    add(projectId: string): void {
      const before = known.get(projectId);
      const times = before && now() < before.until + calmMs ? before.times + 1 : 1;
      known.delete(projectId); // so that they are in the order of their last offence
      known.set(projectId, { times, until: now() + Math.min(longestMs, firstMs * 2 ** (times - 1)) });
      if (known.size > mostKnown) known.delete(known.keys().next().value!);
    },

    /** How many seconds the project still has to wait; 0 for none. */
    secondsLeft(projectId: string): number {
      return Math.max(0, Math.ceil(((known.get(projectId)?.until ?? 0) - now()) / 1000));
    },

    /** The projects that have to wait now. */
    waiting: (): string[] => [...known].filter(([, { until }]) => until > now()).map(([projectId]) => projectId),
  };
}
