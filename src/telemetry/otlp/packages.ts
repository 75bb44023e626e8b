/**
 * The parts of the @opentelemetry packages that are used here. They are loaded when an endpoint is set and not before:
 * loading them takes a quarter of a second of the service's start, and most services have no collector.
 */

/** Seconds and nanoseconds. */
export type Time = [number, number];
export type Attributes = Record<string, string | number>;

/** Opaque: the packages pass it around. */
interface Context {
  readonly context: unique symbol;
}

export interface Span {
  setAttributes(attributes: Attributes): void;
  setStatus(status: { code: number; message?: string }): void;
  end(at: Time): void;
}

interface Tracer {
  startSpan(name: string, options: { startTime: Time; attributes: Attributes }, parent: Context): Span;
}

interface Logger {
  emit(record: {
    timestamp: Time;
    severityNumber: number;
    severityText: string;
    body: string;
    attributes: Attributes;
    context: Context;
  }): void;
}

interface ExportResult {
  code: number;
  error?: Error;
}

export interface Exporter {
  export(items: unknown, done: (result: ExportResult) => void): void;
  shutdown(): Promise<void>;
  forceFlush?(): Promise<void>;
}

interface Provider {
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

interface Batches {
  exporter: Exporter;
  maxQueueSize: number;
  scheduledDelayMillis: number;
  exportTimeoutMillis: number;
}

type NewExporter = new (options: {
  url: string;
  headers: Record<string, string>;
  timeoutMillis: number;
  concurrencyLimit: number;
}) => Exporter;

interface Packages {
  api: { ROOT_CONTEXT: Context; trace: { setSpan(context: Context, span: Span): Context } };
  resources: { resourceFromAttributes(attributes: Attributes): object };
  sdkTrace: {
    TracerProvider: new (options: { resource: object; spanProcessors: object[] }) => Provider & {
      getTracer(name: string, version: string): Tracer;
    };
    BatchSpanProcessor: new (options: Batches) => object;
  };
  sdkLogs: {
    LoggerProvider: new (options: { resource: object; processors: object[] }) => Provider & {
      getLogger(name: string, version: string): Logger;
    };
    BatchLogRecordProcessor: new (options: Batches) => object;
  };
  traces: { OTLPTraceExporter: NewExporter };
  logs: { OTLPLogExporter: NewExporter };
}

const names: Record<keyof Packages, string> = {
  api: '@opentelemetry/api',
  resources: '@opentelemetry/resources',
  sdkTrace: '@opentelemetry/sdk-trace',
  sdkLogs: '@opentelemetry/sdk-logs',
  traces: '@opentelemetry/exporter-trace-otlp-proto',
  logs: '@opentelemetry/exporter-logs-otlp-proto',
};

export async function loadPackages(): Promise<Packages> {
  const loaded = await Promise.all(
    Object.entries(names).map(async ([key, name]) => [key, (await import(name)) as unknown] as const),
  );
  return Object.fromEntries(loaded) as unknown as Packages; // modules that are imported by a computed name have no type
}
