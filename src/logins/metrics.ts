import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type LoginMetrics = ReturnType<typeof loginMetrics>;

export function loginMetrics(registry: Registry) {
  const registers = [registry];
  return {
    flows: new Histogram({
      name: 'corral_login_seconds',
      help: 'Logins from the start of their browser to the saved profile, or to the end without one.',
      labelNames: ['kind', 'outcome'],
      buckets: [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200],
      registers,
    }),
    checks: new Counter({
      name: 'corral_login_checks_total',
      help: 'Checks whether a profile is still logged in.',
      labelNames: ['outcome'],
      registers,
    }),
    measure(count: () => number) {
      return new Gauge({
        name: 'corral_logins',
        help: 'Logins under way on this node.',
        registers,
        collect() {
          this.set(count());
        },
      });
    },
  };
}
