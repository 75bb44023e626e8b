import { SourceFailure } from './source.ts';

/** What an operation is for: its provider, and the project that waits for it. Null: a request for the organisation. */
interface Of {
  provider: string;
  project: string | null;
}

interface Waiting {
  of: Of;
  begin: () => void;
}

interface Limits {
  /** Operations that run at the same time. */
  atOnce: number;
  /** The same for one provider. */
  eachProvider: number;
  /** The same for one project. */
  eachProject: number;
  /** Operations of one project that wait. They stay when their client disconnects. */
  mostWaiting: number;
  waitMs: number;
}

/**
 * Runs some operations at a time; others wait, and the projects that wait take turns. An answer of a store, and a thread of the SDK, take some
 * megabytes each, and every key can cause many at once. A slow store must not take the turns of other stores, and one
 * project not those of others.
 */
export function turns({ atOnce, eachProvider, eachProject, mostWaiting, waitMs }: Limits) {
  const running: Of[] = [];
  /** The project that comes next is first. */
  const queues = new Map<string | null, Waiting[]>();

  function isFree({ provider, project }: Of): boolean {
    const [ofProvider, ofProject] = [
      running.filter((other) => other.provider === provider),
      running.filter((other) => other.project === project),
    ];
    return running.length < atOnce && ofProvider.length < eachProvider && ofProject.length < eachProject;
  }

  function leave(waiting: Waiting): void {
    const { project } = waiting.of;
    const left = queues.get(project)!.filter((other) => other !== waiting);
    if (left.length === 0) queues.delete(project);
    else queues.set(project, left);
  }

  const turn = (of: Of) =>
    new Promise<void>((resolve, reject) => {
      const queue = queues.get(of.project) ?? [];
      if (queue.length >= mostWaiting) return reject(tooMany());
      const waiting: Waiting = {
        of,
        begin() {
          clearTimeout(late);
          running.push(of);
          resolve();
        },
      };
      const late = setTimeout(() => {
        leave(waiting);
        reject(tooMany());
      }, waitMs);
      queues.set(of.project, [...queue, waiting]);
    });

  /** Each project starts its first operation that may begin, and is behind the others then. It comes again while there are places. */
  function startNext(): void {
    for (const [project, queue] of queues) {
      const next = queue.find(({ of }) => isFree(of));
      if (!next) continue;
      leave(next);
      const left = queues.get(project);
      if (left && queues.delete(project)) queues.set(project, left);
      next.begin();
    }
  }

  return async <T>(of: Of, work: () => Promise<T>): Promise<T> => {
    if (isFree(of)) running.push(of);
    else await turn(of);
    try {
      return await work();
    } finally {
      running.splice(running.indexOf(of), 1);
      startNext();
    }
  };
}

const tooMany = () =>
  new SourceFailure('busy', 'Too many requests to stores are running already. Try again in a moment.');
