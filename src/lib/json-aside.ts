import { Worker } from 'node:worker_threads';
import { isLight } from './json-weight.ts';

/** Longer than the largest text that is checked takes, on a busy machine. */
const MOST_MS = 30_000;
const MOST_MEMORY_MB = 1024;

const check = `
  const { parentPort, workerData } = require('node:worker_threads');
  let is = true;
  try { JSON.parse(workerData); } catch { is = false; }
  parentPort.postMessage(is);
`;

let last: Promise<unknown> = Promise.resolve();

/** Whether a text is JSON. What takes long to parse is parsed in a thread of its own, one text at a time. */
export async function isJson(text: string): Promise<boolean> {
  if (!isLight(text)) {
    const answer = last.then(() => checkedAside(text));
    last = answer;
    return answer;
  }
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Never rejects. A text that the thread cannot take is no JSON that others could read. */
function checkedAside(text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const worker = new Worker(check, {
      eval: true,
      workerData: text,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    });
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
