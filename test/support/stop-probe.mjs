// Loaded into a service before it starts (`--import`), this measures the stops of its event loop from within. A connection to the socket
// CORRAL_TEST_STOPS is answered with the longest stop since the connection before, in milliseconds.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Processor time of the main thread. A busy machine takes the processor away from a thread, which makes stops longer by the clock; in
 * processor time it does not.
 */
const spent = () => Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;

let before = spent();
let longest = 0;
function measure() {
  const now = spent();
  longest = Math.max(longest, now - before);
  before = now;
}
setInterval(measure, 5).unref();

createServer((socket) => {
  measure();
  socket.on('error', () => {}).end(String(longest));
  longest = 0;
})
  .on('error', () => {}) // a process that the service started has the same environment, and is not the one to measure
  .listen(process.env.CORRAL_TEST_STOPS)
  .unref();
