import { categoryOf, type EventData, type EventType } from '../lib/telemetry-events.ts';
import type { TelemetryEvent } from '../lib/telemetry.ts';

/** The events that the service itself knows of, without asking the browser. */

const event = <Type extends EventType>(
  kind: 'kernel_api' | 'local_process',
  type: Type,
  data?: EventData<Type>,
): TelemetryEvent => ({
  ts: Date.now() * 1000,
  type,
  category: categoryOf(type),
  source: { kind },
  ...(data ? { data } : {}),
});

export const apiCall = (call: { requestId: string; operationId: string; status: number; durationMs: number }) =>
  event('kernel_api', 'api_call', {
    request_id: call.requestId,
    operation_id: call.operationId,
    status: call.status,
    duration_ms: Math.round(call.durationMs),
  });

export const cdpConnect = () => event('kernel_api', 'cdp_connect');

export const cdpDisconnect = (durationMs: number, messages: number, closeCode: number | undefined) =>
  event('kernel_api', 'cdp_disconnect', {
    duration_ms: Math.round(durationMs),
    message_count: messages,
    reason: reasonOf(closeCode),
  });

export const liveViewConnect = (id: string) => event('kernel_api', 'live_view_connect', { session_id: id });

export const liveViewDisconnect = (id: string, durationMs: number) =>
  event('kernel_api', 'live_view_disconnect', { session_id: id, duration_ms: Math.round(durationMs) });

export type CrashPhase = 'startup' | 'running' | 'gave_up';

export const serviceCrashed = (service: string, phase: CrashPhase, pid?: number) =>
  event('local_process', 'service_crashed', {
    service_name: service,
    phase,
    ...(pid === undefined ? {} : { pid }),
  });

interface Task {
  pid: number;
  name: string;
  bytes: number;
}

/**
 * One event for each process that was ended because the session's memory ran out. The kernel does not say which process it ended: one
 * that grew too fast to be seen before is reported as `unknown`.
 */
export function oomKills(report: { by: 'kernel' | 'service'; mostBytes: number; ended: Task[]; largest: Task[] }) {
  const { by, mostBytes, largest } = report;
  const ended = report.ended.length > 0 ? report.ended : [{ pid: 0, name: 'unknown', bytes: 0 }];
  return ended.map(({ pid, name, bytes }) =>
    event('local_process', 'system_oom_kill', {
      process_name: name,
      pid,
      rss_kb: kb(bytes),
      constraint: by === 'kernel' ? 'memcg' : 'none',
      mem_total_kb: kb(mostBytes),
      ...(largest.length > 0
        ? { top_tasks: largest.map((task) => ({ pid: task.pid, name: task.name, rss_kb: kb(task.bytes) })) }
        : {}),
    }),
  );
}

const kb = (bytes: number) => Math.round(bytes / 1024);

/** By the code with which the service closed the connection; none: the client closed it. */
function reasonOf(code: number | undefined) {
  if (code === undefined) return 'client_close';
  return code === 1012 ? 'upstream_changed' : code === 1011 ? 'upstream_error' : 'context_cancelled';
}
