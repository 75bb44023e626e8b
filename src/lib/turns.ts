import { currentOwner, type Owner } from './scope.ts';

/** How long a piece of work may hold the event loop, in milliseconds. */
const PIECE_MS = 8;

/** Tasks that wait for a turn, by their owner. The owner that comes next is first. */
const waiting = new Map<unknown, (() => void)[]>();
/** When the first task of this turn asked for the time; undefined in a turn without such tasks. */
let began: number | undefined;

function schedule(): void {
  setImmediate(give);
  setImmediate(endTurn); // after the piece of the task that was resumed, so that the sockets that are read next have time of their own
}

function give(): void {
  endTurn();
  const [owner, tasks] = waiting.entries().next().value!;
  const resume = tasks.shift()!;
  waiting.delete(owner);
  if (tasks.length > 0) waiting.set(owner, tasks);
  if (waiting.size > 0) schedule();
  resume();
}

function endTurn(): void {
  began = undefined;
}

const nameOf = (owner?: Owner) => `${owner?.kind} ${owner?.id}`;

/**
 * Yields to the event loop. One waiting task resumes in each turn, because the pieces of many tasks together would be a long stop. Owners
 * take turns: a session with a hundred busy connections does not delay the others by more than a session with one.
 */
export function nextTurn(owner: unknown = nameOf(currentOwner())): Promise<void> {
  return new Promise((resolve) => {
    const tasks = waiting.get(owner);
    if (tasks) tasks.push(resolve);
    else if (waiting.set(owner, [resolve]).size === 1) schedule();
  });
}

/** For tasks that take what arrives. They ask before each message whether others have to be served first. */
export interface Pace {
  isOver(): boolean;
  next(): Promise<void>;
}

/** All sockets that are readable are read in one turn of the event loop, up to 2 MB of each. This bounds the time of that turn. */
export const loopPace: Pace = {
  isOver() {
    if (began !== undefined) return performance.now() - began >= PIECE_MS;
    began = performance.now();
    setImmediate(endTurn);
    return false;
  },
  next: nextTurn,
};

/**
 * Runs small tasks in order: those for which this turn of the event loop has no time left run in later turns. A task that throws does not
 * keep the others from running; the first error is thrown after them.
 */
export function pacedTasks(): (tasks: Iterable<() => void>) => Promise<void> {
  const waiting = new Set<{ run: () => void }>(); // a task is removed before it runs, and not by a shift of all others
  let running = false;
  return async (tasks) => {
    for (const run of tasks) waiting.add({ run });
    if (running) return;
    running = true;
    const errors: unknown[] = [];
    for (const task of waiting) {
      if (loopPace.isOver()) await nextTurn();
      waiting.delete(task);
      try {
        task.run();
      } catch (error) {
        errors.push(error);
      }
    }
    running = false;
    if (errors.length > 0) throw errors[0];
  };
}

/** Yields to the event loop if it is time to. */
export type Turn = () => Promise<void> | undefined;

/**
 * For work that grows with its input. Call the returned function after each small step: it yields to the event loop when 8 ms have passed.
 */
export function turns(): Turn {
  let began = performance.now();
  return () => {
    if (performance.now() - began < PIECE_MS) return undefined;
    return nextTurn().then(() => {
      began = performance.now();
    });
  };
}
