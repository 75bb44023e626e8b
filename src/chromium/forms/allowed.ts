import { text } from '../../lib/shape.ts';
import { urlOf } from '../../lib/urls.ts';
import type { FrameWorld, PageFrames } from './frames.ts';
import { FormsError, type Allow } from './types.ts';
import type { WorldCalls } from './world-calls.ts';

const isOrigin = text(300);

/**
 * The check before a secret leaves. An opaque origin (a sandboxed frame, `data:`) belongs to no site and is never allowed. The origin is
 * the document's own, so `about:srcdoc` and `blob:` count as the site that made them.
 */
export const isAllowed = (allow: Allow, origin: string, around = false): boolean =>
  isWeb(origin) && allow(origin, around);

export function mustAllow(allow: Allow, origin: string, around = false): void {
  if (isAllowed(allow, origin, around)) return;
  const owner = isWeb(origin) ? `of ${origin}` : 'without a site of its own';
  throw new FormsError('foreign', `The value is not for a document ${owner}.`, isWeb(origin) ? origin : undefined);
}

/**
 * Compares the document that an element is in, and every document around it, with what a value is for. It stays true for as long as the
 * element can be used: its script is an object of one document, the origin of a document does not change, and a document that goes takes
 * the documents in its frames with it. The documents are compared last, because a script that is not theirs can return any origin.
 */
export async function mustAllowIn({ calls, frames }: AllowDeps, frame: FrameWorld, allow: Allow): Promise<void> {
  const { step } = calls.patience;
  for (let at: FrameWorld | undefined = frame; at; at = at.parent)
    mustAllow(allow, await calls.originOf(at, step, isOrigin), at !== frame);
  await frames.mustBeSame(frame, step);
}

interface AllowDeps {
  calls: WorldCalls;
  frames: PageFrames;
}

const isWeb = (origin: string) => /^https?:\/\//.test(origin) && urlOf(origin)?.origin === origin;
