import { finishedWithin } from '../../lib/deadline.ts';
import type { Log } from '../../lib/log.ts';
import type { TelemetryEvent } from '../../lib/telemetry.ts';
import { withoutEnd } from '../../lib/text.ts';
import { inMainFrame } from '../export/pages.ts';
import { numberIn, textIn } from '../export/source.ts';
import { loadPackages, type Attributes, type Exporter, type Span, type Time } from './packages.ts';

/** Spans, and as many log records, that wait for the collector. More are dropped: a collector that is down costs memory up to here. */
const mostWaiting = 2048;
/** With the bound above, texts of pages take 8 MB at most. */
const mostText = 4096;
const mostNavigations = 100;
const exportSeconds = 10;
/** At the end of the service, what waits has this long to leave. */
const closeSeconds = 5;
const quietMs = 60_000;

interface OtlpOptions {
  /** The base address of the collector, as OTEL_EXPORTER_OTLP_ENDPOINT has it; `/v1/traces` and `/v1/logs` are added. */
  endpoint: string;
  headers: Record<string, string>;
  version: string;
  nodeId: string;
  log: Log;
}

interface Open {
  span: Span;
  /** By tab. */
  navigations: Map<string, Span>;
}

/**
 * Sends what sessions do to a collector: a trace for each session, with a span for the session itself, for each navigation
 * and each API call in it, and log records for its console. No call waits for the collector.
 */
export async function otlpService({ endpoint, headers, version, nodeId, log }: OtlpOptions) {
  const { api, resources, sdkTrace, sdkLogs, traces, logs } = await loadPackages();
  const resource = resources.resourceFromAttributes({
    'service.name': 'corral',
    'service.version': version,
    'service.instance.id': nodeId,
  });
  const failures = failureLog(log);
  const batches = (exporter: Exporter) => ({
    exporter: failures.watch(exporter),
    maxQueueSize: mostWaiting,
    scheduledDelayMillis: 1000,
    exportTimeoutMillis: exportSeconds * 1000,
  });
  const reach = (path: string) => ({
    url: withoutEnd(endpoint, '/') + path,
    headers,
    timeoutMillis: exportSeconds * 1000,
    concurrencyLimit: 2,
  });
  const tracing = new sdkTrace.TracerProvider({
    resource,
    spanProcessors: [new sdkTrace.BatchSpanProcessor(batches(new traces.OTLPTraceExporter(reach('/v1/traces'))))],
  });
  const logging = new sdkLogs.LoggerProvider({
    resource,
    processors: [new sdkLogs.BatchLogRecordProcessor(batches(new logs.OTLPLogExporter(reach('/v1/logs'))))],
  });
  const tracer = tracing.getTracer('corral', version);
  const logger = logging.getLogger('corral', version);
  const sessions = new Map<string, Open>();
  const within = ({ span }: Open) => api.trace.setSpan(api.ROOT_CONTEXT, span);

  function navigated(open: Open, { ts, data }: TelemetryEvent) {
    if (!inMainFrame(data)) return;
    const tab = textIn(data, 'target_id') ?? '';
    loaded(open, tab, ts);
    if (open.navigations.size >= mostNavigations) return;
    const attributes = { 'url.full': short(textIn(data, 'url')), 'corral.target.id': tab };
    open.navigations.set(tab, tracer.startSpan('navigation', { startTime: time(ts), attributes }, within(open)));
  }

  function loaded(open: Open, tab: string, ts: number) {
    open.navigations.get(tab)?.end(time(ts));
    open.navigations.delete(tab);
  }

  /** Its event is there when the call is over. */
  function called(open: Open, { ts, data }: TelemetryEvent) {
    const status = numberIn(data, 'status') ?? 0;
    const attributes = {
      'corral.request.id': short(textIn(data, 'request_id')),
      'http.response.status_code': status,
    };
    const startTime = time(ts - (numberIn(data, 'duration_ms') ?? 0) * 1000);
    const span = tracer.startSpan(short(textIn(data, 'operation_id')), { startTime, attributes }, within(open));
    if (status >= 500) span.setStatus({ code: 2 });
    span.end(time(ts));
  }

  function said(open: Open, sessionId: string, { type, ts, data }: TelemetryEvent) {
    const level = textIn(data, 'level') ?? (type === 'console_error' ? 'error' : 'log');
    const attributes: Attributes = { 'corral.session.id': sessionId, 'event.name': type };
    const url = textIn(data, 'url');
    if (url) attributes['url.full'] = short(url);
    logger.emit({
      timestamp: time(ts),
      severityNumber: severities[level] ?? 9,
      severityText: level,
      body: short(textIn(data, 'text')),
      attributes,
      context: within(open),
    });
  }

  return {
    sessionStarted({ sessionId }: { sessionId: string }) {
      const attributes = { 'corral.session.id': sessionId };
      const span = tracer.startSpan('session', { startTime: time(now()), attributes }, api.ROOT_CONTEXT);
      sessions.set(sessionId, { span, navigations: new Map() });
    },

    sessionEnded({ sessionId, projectId, poolId, reason }: SessionEnd) {
      const open = sessions.get(sessionId);
      if (!open) return;
      sessions.delete(sessionId);
      for (const span of open.navigations.values()) span.end(time(now()));
      open.span.setAttributes({
        'corral.project.id': projectId,
        'corral.end.reason': reason,
        ...(poolId && { 'corral.pool.id': poolId }),
      });
      open.span.end(time(now()));
    },

    /** An event of a session, without the secrets. */
    event(sessionId: string, event: TelemetryEvent) {
      const open = sessions.get(sessionId);
      if (!open) return;
      if (event.type === 'page_navigation') navigated(open, event);
      else if (event.type === 'page_load') loaded(open, textIn(event.data, 'target_id') ?? '', event.ts);
      else if (event.type === 'api_call') called(open, event);
      else if (event.category === 'console') said(open, sessionId, event);
    },

    /** Sends what waits, as far as the collector takes it in time. */
    async close() {
      await finishedWithin(closeSeconds * 1000, Promise.allSettled([tracing.shutdown(), logging.shutdown()]));
    },
  };
}

interface SessionEnd {
  sessionId: string;
  projectId: string;
  poolId: string | null;
  reason: string;
}

/** The types of events that are sent, for callers that can spare the others the way here. */
export function isSent(type: string): boolean {
  return /^(page_navigation|page_load|api_call|console_log|console_error)$/.test(type);
}

/** The numbers of OpenTelemetry for the levels of consoles. */
const severities: Record<string, number> = { debug: 5, log: 9, info: 9, warning: 13, warn: 13, error: 17, assert: 17 };

/** A collector that is down fails every second. One line a minute says so. */
function failureLog(log: Log) {
  let quietUntil = 0;
  return {
    watch: (exporter: Exporter): Exporter => ({
      export: (items, done) =>
        exporter.export(items, (result) => {
          if (result.error && Date.now() >= quietUntil) {
            quietUntil = Date.now() + quietMs;
            log.warn({ reason: result.error.message.slice(0, 200) }, 'otlp.failed');
          }
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => exporter.forceFlush?.(),
    }),
  };
}

function time(microseconds: number): Time {
  return [Math.floor(microseconds / 1e6), Math.round((microseconds % 1e6) * 1000)];
}

function now(): number {
  return Date.now() * 1000;
}

function short(text: string | undefined): string {
  return (text ?? '').slice(0, mostText);
}
