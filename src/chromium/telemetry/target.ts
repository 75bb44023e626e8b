import { categoryOf, type EventContext, type EventData, type EventType } from '../../lib/telemetry-events.ts';
import type { Finish, TelemetryEvent } from '../../lib/telemetry.ts';

/** Something in the browser that runs documents or scripts: a page, a frame in another process, a worker. */
export interface Target {
  readonly sessionId: string;
  readonly targetId: string;
  /** Chromium's word for it. */
  readonly type: string;
  /** The page or frame that it belongs to; undefined for pages, service workers and shared workers. */
  readonly parent: Target | undefined;
  /** The last of the parents. Kept, and not looked for: it is needed for each event. */
  readonly root: Target | undefined;
  /** How many parents it has. */
  readonly depth: number;
  readonly parentFrameId: string | undefined;
  readonly openerId: string | undefined;
  /** It started under the collector's eyes: nothing that it does has happened before. */
  readonly fresh: boolean;
  readonly title: string;
  /** Redacted, like those of frames and requests: each event has it, and to redact it takes long. */
  url: string;
  /** Counts the documents of a page's main frame. */
  navSeq: number;
  frames: Map<string, Frame>;
  /** The frame of each execution context, while Runtime is enabled. */
  contexts: Map<number, string>;
  /** When the document of a page began to load, in milliseconds; undefined when it has loaded. */
  loadingSince: number | undefined;
  /** What it said before it was observed has been repeated by Chromium, and dropped. */
  consoleIsLive: boolean;
  gone: boolean;
}

interface Frame {
  url: string;
  loaderId: string | undefined;
  parentId: string | undefined;
}

/** More parents than a frame or worker has. */
export const MOST_DEPTH = 32;
/** More frames of one target are not followed. */
export const MOST_FRAMES = 2000;

export const isDocument = ({ type }: Target) => !isWorker(type);
export const isWorker = (type: string) => type.endsWith('worker');

/** A document that loads for longer is taken for loaded: some never are. */
const LONGEST_LOAD_MS = 3000;

/**
 * How long a page may still load its document, in milliseconds; 0: it has loaded. What slows a page down, and can wait, waits for that:
 * the bodies of responses, and pictures.
 */
export function loadingFor({ loadingSince }: Target): number {
  return loadingSince === undefined ? 0 : Math.max(0, loadingSince + LONGEST_LOAD_MS - performance.now());
}

/** The page that a frame or worker belongs to, or the worker itself if there is none. */
export function rootOf(target: Target): Target {
  return target.root ?? target;
}

const wireTypes = ['page', 'background_page', 'service_worker', 'shared_worker'] as const;
type WireType = (typeof wireTypes)[number] | 'other';

/** The type as events have it. Frames and dedicated workers are `other`; the event's source says more. */
export function wireType(type: string): WireType {
  return wireTypes.find((known) => known === type) ?? 'other';
}

interface Place {
  frameId?: string | undefined;
  loaderId?: string | undefined;
  url?: string | undefined;
}

/** The fields that say where in the browser an event happened; some may be undefined. */
export function contextOf(target: Target, place: Place = {}): EventContext {
  const frameId = place.frameId ?? (isDocument(target) ? target.targetId : undefined);
  const frame = target.frames.get(frameId ?? '');
  const loaderId = place.loaderId ?? frame?.loaderId;
  return {
    session_id: target.sessionId,
    target_id: target.targetId,
    target_type: wireType(target.type),
    frame_id: frameId || undefined,
    loader_id: loaderId || undefined,
    url: place.url ?? frame?.url ?? target.url,
    nav_seq: rootOf(target).navSeq,
  };
}

/** An event as a part of the collector reports it. Undefined fields of `data` are left out. */
export type NewEvent<Type extends EventType = EventType> = {
  [T in Type]: {
    type: T;
    /** The CDP event or command that it comes from. */
    from?: string;
    target?: Target;
    metadata?: Record<string, string | undefined>;
    data?: EventData<T>;
  };
}[Type];

export type Emit = (event: NewEvent) => void;
/** Takes an event of which a part is to come. */
export type Draft = (event: NewEvent) => Finish<NewEvent>;

export function eventOf({ type, from, target, metadata, data }: NewEvent, now: number): TelemetryEvent {
  const kind = target && wireType(target.type) === 'other' ? target.type : undefined;
  const notes = known(kind === undefined ? metadata : { target_type: kind, ...metadata });
  const fields = known(data);
  return {
    ts: now * 1000,
    type,
    category: categoryOf(type),
    source: {
      kind: 'cdp',
      ...(from !== undefined && { event: from }),
      ...(notes && Object.keys(notes).length > 0 && { metadata: notes }),
    },
    ...(fields && { data: fields }),
  };
}

/** The fields that are not undefined. A loop, because a page makes two events for each request while it loads. */
function known<T>(fields: Record<string, T | undefined> | undefined): Record<string, T> | undefined {
  if (!fields) return undefined;
  const result: Record<string, T> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined) result[name] = value;
  }
  return result;
}
