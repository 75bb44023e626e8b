import { anyText, object, optional, record, text, type Checked } from '../../lib/shape.ts';

/** What CDP says about the frames of a page, as far as the service reads it. A new frame's loader may be the empty text. */
const id = text(128);

const isFrame = object({ id, parentId: optional(id), loaderId: id, url: anyText });
export const isNavigated = object({ frame: isFrame });

export interface FrameTree {
  frame: Checked<typeof isFrame>;
  childFrames?: FrameTree[];
}
/** Frames nest; a page with more levels than this has no use for a frame's address. */
const MOST_LEVELS = 50;
const isTree = (value: unknown, level = 0): value is FrameTree =>
  record(value) &&
  isFrame(value['frame']) &&
  (value['childFrames'] === undefined ||
    (level < MOST_LEVELS &&
      Array.isArray(value['childFrames']) &&
      value['childFrames'].every((child) => isTree(child, level + 1))));
export const isFrameTree = object({ frameTree: (value: unknown): value is FrameTree => isTree(value) });
