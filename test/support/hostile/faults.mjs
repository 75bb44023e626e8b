/**
 * Loaded into a service before its own code (`NODE_OPTIONS=--import`): it fails as code with a mistake would, where the words of a tenant
 * come in or go out by a socket. What it does is done in the middle of the session's work, in a callback of Node's.
 */
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';

const { emit } = EventEmitter.prototype;
const { write } = Socket.prototype;

EventEmitter.prototype.emit = function (event, ...args) {
  if (event === 'data' && this instanceof Socket && Buffer.isBuffer(args[0])) {
    if (args[0].includes('fault: a rejection')) void Promise.reject(new Error('Nobody handles this rejection.'));
    if (args[0].includes('fault: an exception')) throw new Error('Nobody catches this exception.');
  }
  return emit.call(this, event, ...args);
};

/** A browser hears nothing from the moment when a login asks for its cookies, and the test is told. */
const deaf = new WeakSet();
Socket.prototype.write = function (chunk, ...rest) {
  if (chunk.includes('Network.getAllCookies')) {
    deaf.add(this);
    process.stderr.write('The cookies are asked for.\n');
  }
  if (!deaf.has(this)) return write.call(this, chunk, ...rest);
  rest.findLast((given) => typeof given === 'function')?.();
  return true;
};
