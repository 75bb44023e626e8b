import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { FastifyInstance } from 'fastify';
import { watchLoop, type LoopWatch } from '../lib/loop-stops.ts';

/**
 * Interval of the timer that measures how late the event loop is. Each round wakes the process up, and the client's own 10 ms cost an idle
 * service a hundredth of a core. The metrics `corral_nodejs_eventloop_lag_{min,mean,p50,…}_seconds` include the interval: they are 0.1 at rest.
 */
const LAG_EVERY_MS = 100;

/** One registry per service, so that two services in one process (as in tests) are counted separately. */
export function metricsRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'corral_', eventLoopMonitoringPrecision: LAG_EVERY_MS });
  return registry;
}

/** One thread serves all tenants: while the event loop is blocked, no request is answered. */
export function measureStops(registry: Registry, onStop: (ms: number) => void): LoopWatch {
  const seconds = new Histogram({
    name: 'corral_event_loop_stop_seconds',
    help: 'Duration of each stop of the event loop of 20 ms or more.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  const watch = watchLoop((ms) => {
    seconds.observe(ms / 1000);
    onStop(ms);
  });
  const longest: Gauge = new Gauge({
    name: 'corral_event_loop_longest_stop_seconds',
    help: 'The longest stop of the event loop in the last hour.',
    registers: [registry],
    collect: () => longest.set(watch.longestMs() / 1000),
  });
  return watch;
}

export function measureRequests(app: FastifyInstance, registry: Registry): void {
  const seconds = new Histogram({
    name: 'corral_http_request_duration_seconds',
    help: 'From the first byte of a request to the last of its answer, by route.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  app.addHook('onResponse', async (request, reply) => {
    const labels = {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: String(reply.statusCode),
    };
    seconds.observe(labels, reply.elapsedTime / 1000);
  });
}
