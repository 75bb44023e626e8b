import type { EventCategory, TelemetryEvent } from '../lib/telemetry.ts';

/** The events that the service itself knows of, without asking the browser. */

const event = (
  kind: 'kernel_api' | 'local_process',
  category: EventCategory,
  type: string,
  data?: Record<string, unknown>,
): TelemetryEvent => ({ ts: Date.now() * 1000, type, category, source: { kind }, ...(data ? { data } : {}) });

export const apiCall = (call: { requestId: string; operationId: string; status: number; durationMs: number }) =>
  event('kernel_api', 'control', 'api_call', {
    request_id: call.requestId,
    operation_id: call.operationId,
    status: call.status,
    duration_ms: Math.round(call.durationMs),
  });

export const cdpConnect = () => event('kernel_api', 'connection', 'cdp_connect');

export const cdpDisconnect = (durationMs: number, messages: number, closeCode: number | undefined) =>
  event('kernel_api', 'connection', 'cdp_disconnect', {
    duration_ms: Math.round(durationMs),
    message_count: messages,
    reason: reasonOf(closeCode),
  });

export const liveViewConnect = (id: string) =>
  event('kernel_api', 'connection', 'live_view_connect', { session_id: id });

export const liveViewDisconnect = (id: string, durationMs: number) =>
  event('kernel_api', 'connection', 'live_view_disconnect', { session_id: id, duration_ms: Math.round(durationMs) });

export type CrashPhase = 'startup' | 'running' | 'gave_up';

export const serviceCrashed = (service: string, phase: CrashPhase, pid?: number) =>
  event('local_process', 'system', 'service_crashed', {
    service_name: service,
    phase,
    ...(pid === undefined ? {} : { pid }),
  });

/** A process that was ended because the session's memory ran out. */
export interface OomKill {
  pid: number;
  name: string;
  rssKb: number;
  constraint: 'none' | 'memcg';
  limitKb?: number;
  /** The largest processes at that time, that one included. */
  top?: readonly { pid: number; name: string; rssKb: number }[];
}

export const oomKill = ({ pid, name, rssKb, constraint, limitKb, top = [] }: OomKill) =>
  event('local_process', 'system', 'system_oom_kill', {
    process_name: name,
    pid,
    rss_kb: rssKb,
    constraint,
    ...(limitKb === undefined ? {} : { mem_total_kb: limitKb }),
    ...(top.length > 0
      ? { top_tasks: top.slice(0, 5).map((task) => ({ pid: task.pid, name: task.name, rss_kb: task.rssKb })) }
      : {}),
  });

/** By the code with which the service closed the connection; none: the client closed it. */
function reasonOf(code: number | undefined) {
  if (code === undefined) return 'client_close';
  return code === 1012 ? 'upstream_changed' : code === 1011 ? 'upstream_error' : 'context_cancelled';
}
