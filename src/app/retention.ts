import type { FastifyBaseLogger } from 'fastify';
import type { Config } from '../config.ts';
import type { AuditService } from '../org/audit.ts';
import type { KeptLogs } from '../sessions/logs/kept.ts';
import type { ReplayService } from '../sessions/replays/service.ts';
import type { TelemetryService } from '../telemetry/service.ts';
import type { Db } from '../store/db.ts';
import { forgetHistory } from '../store/history.ts';

/** Deletes data that is older than the retention settings. */
export function forgetHourly(
  config: Config,
  deps: {
    audit: AuditService;
    replays: ReplayService;
    telemetry: Pick<TelemetryService, 'expire'>;
    sessionLogs: Pick<KeptLogs, 'prune'>;
    deployments: { forgetLogs(days: number): Promise<void> };
    db: Db;
    log: FastifyBaseLogger;
  },
) {
  const { audit, replays, telemetry, sessionLogs, deployments, db, log } = deps;
  const notPruned = (what: string) => (error: Error) => log.warn({ error: error.message }, `${what}.not_pruned`);
  const forget = () => {
    void audit.tidy(config.auditDays).catch(notPruned('audit'));
    void telemetry.expire().catch(notPruned('telemetry'));
    void sessionLogs.prune().catch(notPruned('session_logs'));
    void replays.expire().catch(notPruned('replays'));
    void deployments.forgetLogs(config.logDays).catch(notPruned('logs'));
    void forgetHistory(db, config.historyDays).catch(notPruned('history'));
  };
  return setInterval(forget, 60 * 60 * 1000).unref();
}
