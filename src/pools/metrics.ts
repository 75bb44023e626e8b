import { Counter, Histogram, type Registry } from 'prom-client';

export type PoolMetrics = ReturnType<typeof poolMetrics>;

export function poolMetrics(registry: Registry) {
  const registers = [registry];
  return {
    acquires: new Histogram({
      name: 'corral_pool_acquire_seconds',
      help: 'From asking for a browser to having it, or to hearing that the poll is over.',
      labelNames: ['outcome'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    waits: new Histogram({
      name: 'corral_pool_wait_seconds',
      help: 'From asking for a browser to the end of the wait in the queue, with a browser or without.',
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    launches: new Counter({
      name: 'corral_pool_launches_total',
      help: 'Browsers made for pools.',
      labelNames: ['outcome'],
      registers,
    }),
    releases: new Counter({
      name: 'corral_pool_releases_total',
      help: 'Leases given back: never used and put back, renewed by a fresh browser, kept as they were, or destroyed.',
      labelNames: ['how'],
      registers,
    }),
  };
}
