import { anyText, flag, integer, list, number, object, optional, record, text, type Checked } from '../../lib/shape.ts';

/** The parts of CDP messages that the service reads. A compromised browser may send anything else. */

/** The id of a target or a session has 32 characters; nothing much longer is kept. */
const id = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 128;

export const isAttached = object({ sessionId: id });
export const isCreated = object({ targetId: id });
export const isTargetInfo = object({
  targetId: id,
  type: anyText,
  subtype: optional(anyText),
  title: anyText,
  url: anyText,
  openerId: optional(anyText),
  browserContextId: optional(anyText),
});
export type TargetInfo = Checked<typeof isTargetInfo>;
export const isTargetNews = object({ targetInfo: isTargetInfo });
/** The event about a target to which a client was attached automatically. */
export const isAttachedTo = object({
  sessionId: id,
  waitingForDebugger: flag,
  targetInfo: object({
    targetId: id,
    type: text(64),
    title: anyText,
    url: anyText,
    openerId: optional(id),
    parentFrameId: optional(id),
  }),
});
export const isTargetGone = object({ targetId: id });
export const isTargetList = object({ targetInfos: list(isTargetInfo) });
export const isEvaluated = object({
  result: record,
  exceptionDetails: optional(record),
});
/** The largest page size: a picture of a page is held in memory. */
const MOST_PIXELS = 16_384;
export const isLayout = object({
  cssLayoutViewport: object({ clientWidth: integer(0, MOST_PIXELS), clientHeight: integer(0, MOST_PIXELS) }),
  cssVisualViewport: object({ pageX: number(-1e9, 1e9), pageY: number(-1e9, 1e9) }),
});
export const isScreencastFrame = object({
  data: anyText,
  sessionId: integer(0, 2 ** 31),
  metadata: object({ deviceWidth: number(0, 1e6), deviceHeight: number(0, 1e6) }),
});
export type ScreencastFrame = Checked<typeof isScreencastFrame>;
