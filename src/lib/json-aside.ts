import { Worker } from 'node:worker_threads';
import { isLight } from './json-weight.ts';
import { nextTurn } from './turns.ts';

/** Longer than the largest text that is checked takes, on a busy machine. */
const MOST_MS = 30_000;
const MOST_MEMORY_MB = 1024;
const LONG = 1024 * 1024;
/** Of one owner. */
const MOST_WAITING = 20;

const check = `
  const { parentPort, workerData } = require('node:worker_threads');
  let is = true;
  try { JSON.parse(workerData); } catch { is = false; }
  parentPort.postMessage(is);
`;

/** The service is too busy to say whether a text is JSON. */
export class NotChecked extends Error {
  override readonly name = 'NotChecked';
}

type Check = () => Promise<void>;
/** In the order of their next turns. */
const waiting = new Map<unknown, Check[]>();
let checking = false;

/**
 * Whether a text is JSON. What takes long to parse is parsed in a thread of its own, one text at a time; owners take turns. Rejects with
 * NotChecked when too many of the owner wait, or there is no thread to be had.
 */
export async function isJson(text: string, owner: unknown, start = thread): Promise<boolean> {
  if (!isLight(text)) return inTurn(owner, () => checkedAside(text, start));
  if (text.length > LONG) await nextTurn(); // 10 MiB take up to 40 ms to weigh, and as long to parse
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function inTurn(owner: unknown, check: () => Promise<boolean>): Promise<boolean> {
  const queue = waiting.get(owner) ?? [];
  if (queue.length >= MOST_WAITING) throw new NotChecked(`${MOST_WAITING} large texts wait to be checked already.`);
  return new Promise((resolve, reject) => {
    queue.push(() => check().then(resolve, reject));
    waiting.set(owner, queue);
    if (!checking) void checkAll();
  });
}

async function checkAll(): Promise<void> {
  checking = true;
  for (let [next] = waiting; next; [next] = waiting) {
    const [owner, queue] = next;
    const check = queue.shift()!;
    waiting.delete(owner);
    if (queue.length > 0) waiting.set(owner, queue); // behind the others
    await check();
  }
  checking = false;
}

function thread(text: string): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: MOST_MEMORY_MB };
  return new Worker(check, { eval: true, workerData: text, execArgv: [], env: {}, resourceLimits });
}

/** Rejects if there is no thread. A text that the thread cannot take is no JSON that others could read. */
function checkedAside(text: string, start: typeof thread): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let worker: Worker;
    try {
      worker = start(text);
    } catch (cause) {
      return reject(new NotChecked('No thread can be started to check a large text.', { cause }));
    }
    const end = (is: boolean) => {
      clearTimeout(late);
      resolve(is);
      void worker.terminate();
    };
    const late = setTimeout(() => end(false), MOST_MS);
    worker.unref();
    worker.once('message', (is) => end(is === true));
    worker.once('error', () => end(false));
    worker.once('exit', () => end(false));
  });
}
