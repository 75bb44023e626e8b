import { Counter, type Registry } from 'prom-client';

export type ProfileMetrics = ReturnType<typeof profileMetrics>;

export function profileMetrics(registry: Registry) {
  return {
    saves: new Counter({
      name: 'corral_profile_saves_total',
      help: 'Profiles that sessions wrote back, and those they could not.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
