import { anyText, flag, list, number, object, optional, record, text, type Checked } from '../../lib/shape.ts';

/** The parts of CDP messages that the collector reads. A compromised browser may send anything else. */

/** Ids of targets, sessions, frames, loaders and requests have 32 characters or fewer; nothing much longer is kept. */
const id = text(128);
const time = number(0, 1e12);

export const isDetachedFrom = object({ sessionId: id });

export const isNavigatedWithin = object({ frameId: id, url: anyText });
export const isFrameGone = object({ frameId: id, reason: anyText });
export const isOfFrame = object({ frameId: id });
export const isStarting = object({ frameId: id, url: anyText, navigationType: anyText });
export const isFired = object({ timestamp: time });
export const isDialog = object({ type: anyText, hasBrowserHandler: flag });

export const isContext = object({
  context: object({ id: number(0, 2 ** 53), auxData: optional(record) }),
});
export const isContextGone = object({ executionContextId: number(0, 2 ** 53) });
export const isConsoleCall = object({
  type: text(64),
  args: list(record),
  executionContextId: optional(number(0, 2 ** 53)),
  stackTrace: optional(record),
});
export const isException = object({
  exceptionDetails: object({
    text: anyText,
    lineNumber: number(-1, 2 ** 31),
    columnNumber: number(-1, 2 ** 31),
    url: optional(anyText),
    stackTrace: optional(record),
    exception: optional(record),
    executionContextId: optional(number(0, 2 ** 53)),
  }),
});
export const isBindingCall = object({ name: text(128), payload: text(20_000), executionContextId: number(0, 2 ** 53) });

const isResponse = object({
  url: anyText,
  status: number(0, 1e6),
  statusText: anyText,
  headers: record,
  mimeType: anyText,
  protocol: optional(anyText),
  fromDiskCache: optional(flag),
  fromServiceWorker: optional(flag),
  remoteIPAddress: optional(anyText),
  remotePort: optional(number(0, 65_535)),
});
export type Response = Checked<typeof isResponse>;
export const isRequestSent = object({
  requestId: id,
  loaderId: id,
  documentURL: anyText,
  request: object({
    url: anyText,
    urlFragment: optional(anyText),
    method: text(128),
    headers: record,
    postData: optional(anyText),
  }),
  timestamp: time,
  initiator: object({ type: text(64) }),
  redirectResponse: optional(isResponse),
  type: optional(text(64)),
  frameId: optional(id),
});
export type RequestSent = Checked<typeof isRequestSent>;
export const isResponseReceived = object({ requestId: id, timestamp: time, type: text(64), response: isResponse });
export const isFinished = object({ requestId: id, timestamp: time, encodedDataLength: number(-1, 2 ** 53) });
export const isFailed = object({
  requestId: id,
  timestamp: time,
  type: text(64),
  errorText: anyText,
  canceled: optional(flag),
});
export const isBody = object({ body: anyText, base64Encoded: flag });

export const isTimelineEvent = object({
  event: object({
    frameId: id,
    type: text(64),
    time: time,
    duration: optional(number(-1, 1e12)),
    lcpDetails: optional(
      object({
        renderTime: time,
        loadTime: time,
        size: number(0, 1e12),
        elementId: optional(anyText),
        url: optional(anyText),
        nodeId: optional(number(0, 2 ** 53)),
      }),
    ),
    layoutShiftDetails: optional(object({ value: number(0, 1e6), hadRecentInput: flag })),
  }),
});
