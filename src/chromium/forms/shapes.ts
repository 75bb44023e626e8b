import { anyText, flag, number, object, optional, record, text } from '../../lib/shape.ts';

/** The parts of CDP messages that the forms read. A compromised browser may send anything else. */

const id = text(128);

export const isDetachedFrom = object({ sessionId: id });
export const isTargetChanged = object({ targetInfo: object({ targetId: id, title: anyText, url: anyText }) });
export const isDialog = object({ type: anyText, message: anyText });

export const isNavigatedWithin = object({ frameId: id });
export const isWorld = object({ executionContextId: number(0, 2 ** 53) });
export const isOwner = object({ backendNodeId: number(0, 2 ** 53) });
export const isResolved = object({ object: object({ objectId: optional(text(1000)) }) });
export const isInstalled = object({ result: object({ objectId: text(1000) }), exceptionDetails: optional(record) });
export const isNavigation = object({ loaderId: optional(id), errorText: optional(text(1000)) });

export const isRequestSent = object({
  requestId: id,
  loaderId: id,
  request: object({ url: anyText, method: text(128) }),
  type: optional(text(64)),
  frameId: optional(id),
});
export const isResponseReceived = object({
  requestId: id,
  type: text(64),
  frameId: optional(id),
  response: object({ status: number(0, 1e6) }),
});
export const isOver = object({ requestId: id });

export const isAuthRequired = object({
  requestId: id,
  frameId: id,
  resourceType: text(64),
  authChallenge: object({
    source: optional(text(64)),
    origin: anyText,
    scheme: text(64),
    realm: anyText,
  }),
});
export const isPaused = object({ requestId: id });

/** Base64 of a key or a handle; WebAuthn's are far shorter. */
const blob = text(20_000);
export const isPasskey = object({
  credentialId: blob,
  isResidentCredential: flag,
  rpId: optional(text(300)),
  privateKey: blob,
  userHandle: optional(blob),
  signCount: number(0, 2 ** 53),
  userName: optional(text(300)),
  userDisplayName: optional(text(300)),
});
