import { Gauge, type Registry } from 'prom-client';
import type { SessionService } from './service.ts';

export function measureSessions(registry: Registry, sessions: Pick<SessionService, 'counts'>): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  gauge('corral_sessions', 'Sessions whose browsers this node holds.', () => sessions.counts().live);
  gauge('corral_sessions_standby', 'Of those, the ones that stand by, frozen.', () => sessions.counts().standby);
  gauge('corral_sessions_max', 'How many this node holds at most.', () => sessions.counts().capacity);
  gauge('corral_session_clients', 'Open CDP, BiDi and live view connections.', () => sessions.counts().clients);
  gauge(
    'corral_spares_headless',
    'Headless browsers that run for sessions to come.',
    () => sessions.counts().spares.headless,
  );
  gauge(
    'corral_spares_headful',
    'Headful browsers that run for sessions to come.',
    () => sessions.counts().spares.headful,
  );
}
