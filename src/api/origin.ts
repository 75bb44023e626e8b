import { networkInterfaces } from 'node:os';
import type { FastifyInstance } from 'fastify';

/** The URL for clients on this machine: a wildcard is an address to listen on, not to connect to. */
export function origin(http: Pick<FastifyInstance, 'listeningOrigin'>): string {
  return http.listeningOrigin.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** The URL for other nodes: on a wildcard, the first address of this machine that is not loopback. */
export function internalOrigin(http: Pick<FastifyInstance, 'listeningOrigin'>): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outward = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  return outward ? http.listeningOrigin.replace(/\/\/(0\.0\.0\.0|\[::\]):/, `//${outward.address}:`) : origin(http);
}
