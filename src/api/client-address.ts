import proxyAddr from '@fastify/proxy-addr';
import type { IncomingMessage } from 'node:http';

export type ClientAddress = (request: IncomingMessage) => string;

/**
 * The address of the client of a websocket, as Fastify has it for HTTP requests: what trusted proxies say, or else the other end of the
 * connection. An address that sends many unknown keys has to wait, and behind a proxy that must not be the proxy.
 */
export function clientAddress(trustProxy: readonly string[]): ClientAddress {
  const trusts = proxyAddr.compile([...trustProxy]);
  return (request) => proxyAddr(request, trusts) ?? '';
}
