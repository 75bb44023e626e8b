import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The bytes that are in use after a collection of garbage. */
export const heapUsed = () => collected().heapUsed;

/** The same of buffers. */
export const buffersUsed = () => collected().arrayBuffers;

function collected() {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage();
}
