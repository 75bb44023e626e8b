import type { EventCategory, TelemetryEvent } from '../../lib/telemetry.ts';
import { cleanUrl } from './redact.ts';

/** Something in the browser that runs documents or scripts: a page, a frame in another process, a worker. */
export interface Target {
  readonly sessionId: string;
  readonly targetId: string;
  /** Chromium's word for it. */
  readonly type: string;
  /** The page or frame that it belongs to; undefined for pages, service workers and shared workers. */
  readonly parent: Target | undefined;
  readonly parentFrameId: string | undefined;
  readonly openerId: string | undefined;
  /** It started under the collector's eyes: nothing that it does has happened before. */
  readonly fresh: boolean;
  readonly title: string;
  url: string;
  /** Counts the documents of a page's main frame. */
  navSeq: number;
  frames: Map<string, Frame>;
  /** The frame of each execution context, while Runtime is enabled. */
  contexts: Map<number, string>;
  /** What it said before it was observed has been repeated by Chromium, and dropped. */
  consoleIsLive: boolean;
  gone: boolean;
}

export interface Frame {
  url: string;
  loaderId: string | undefined;
  parentId: string | undefined;
}

/** More frames of one target are not told apart. */
export const MOST_FRAMES = 2000;

export const isDocument = ({ type }: Target) => !isWorker(type);
export const isWorker = (type: string) => type.endsWith('worker');

/** The page that a frame or worker belongs to, or the worker itself if there is none. */
export function rootOf(target: Target): Target {
  let root = target;
  while (root.parent) root = root.parent;
  return root;
}

const wireTypes = new Set(['page', 'background_page', 'service_worker', 'shared_worker']);

/** The type as events have it. Frames and dedicated workers are `other`; the event's source says more. */
export function wireType(type: string): string {
  return wireTypes.has(type) ? type : 'other';
}

export interface Place {
  frameId?: string | undefined;
  loaderId?: string | undefined;
  url?: string | undefined;
}

/** The fields that say where in the browser an event happened. */
export function contextOf(target: Target, place: Place = {}): Record<string, unknown> {
  const frameId = place.frameId ?? (isDocument(target) ? target.targetId : undefined);
  const frame = target.frames.get(frameId ?? '');
  const loaderId = place.loaderId ?? frame?.loaderId;
  return {
    session_id: target.sessionId,
    target_id: target.targetId,
    target_type: wireType(target.type),
    ...(frameId !== undefined && frameId !== '' && { frame_id: frameId }),
    ...(loaderId !== undefined && loaderId !== '' && { loader_id: loaderId }),
    url: cleanUrl(place.url ?? frame?.url ?? target.url),
    nav_seq: rootOf(target).navSeq,
  };
}

/** What a part of the collector tells. Undefined fields of `data` are left out. */
export interface Told {
  category: EventCategory;
  type: string;
  /** The CDP event or command that it comes from. */
  from?: string;
  target?: Target;
  metadata?: Record<string, string | undefined>;
  data?: Record<string, unknown>;
}

export type Tell = (told: Told) => void;

export function eventOf({ category, type, from, target, metadata, data }: Told, now: number): TelemetryEvent {
  const notes = Object.fromEntries(
    Object.entries({
      ...(target && wireType(target.type) === 'other' && { target_type: target.type }),
      ...metadata,
    }).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const known = data && Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined));
  return {
    ts: now * 1000,
    type,
    category,
    source: {
      kind: 'cdp',
      ...(from !== undefined && { event: from }),
      ...(Object.keys(notes).length > 0 && { metadata: notes }),
    },
    ...(known && { data: known }),
  };
}
