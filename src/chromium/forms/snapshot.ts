import type { AttachedPage } from './attached-pages.ts';
import { MOST_TEXTS } from './bounds.ts';
import type { FrameWorld, PageFrames } from './frames.ts';
import type { FormsCalls, Look } from './page-calls.ts';
import type { References } from './references.ts';
import { selectParts, type Kept } from './selection.ts';
import type { BasicChallenge, Box, El, FrameSnapshot, Snapshot, TextBlock } from './types.ts';
import type { WorldCalls } from './world-calls.ts';

interface SnapshotDeps {
  frames: PageFrames;
  calls: WorldCalls;
  references: References;
  challengeOf: (page: AttachedPage, origin: string) => BasicChallenge | undefined;
}

export async function takeSnapshot(
  page: AttachedPage,
  { frames, calls, references, challengeOf }: SnapshotDeps,
): Promise<Snapshot> {
  const { patience } = calls;
  const [main, ...others] = await frames.worlds(page);
  const number = references.nextLook();
  const lookAt = (frame: FrameWorld, ms: number) => calls.call(frame, ms, 'look', number);
  const [mainLook, ...looks] = await Promise.all([
    lookAt(main, patience.main),
    ...others.map((frame) =>
      Promise.all([lookAt(frame, patience.frame), placeIn(frame)]).then(
        ([look, place]) => ({ frame, look, place }),
        () => undefined,
      ),
    ),
  ]);

  async function placeIn(frame: FrameWorld): Promise<ReturnType<FormsCalls['framePlace']>> {
    const { objectId, parent } = await frames.ownerOf(frame);
    return calls.onFrame({ objectId, sessionId: parent.sessionId }, patience.frame, 'framePlace');
  }

  const places = new Map<string, { box: Box; visible: boolean }>();
  const frameLooks: Seen[] = [];
  for (const found of looks) {
    if (!found) continue;
    const { frame, look, place } = found;
    const parent = places.get(frame.parent!.frameId);
    const box = {
      x: Math.round(place.x + (parent?.box.x ?? 0)),
      y: Math.round(place.y + (parent?.box.y ?? 0)),
      width: Math.round(place.width),
      height: Math.round(place.height),
    };
    const visible = place.shown && (parent?.visible ?? true);
    places.set(frame.frameId, { box, visible });
    frameLooks.push({ frame, look, main: false, box, visible });
  }
  frameLooks.sort((a, b) => Number(b.visible) - Number(a.visible) || a.box!.y - b.box!.y || a.box!.x - b.box!.x);
  frameLooks.unshift({ frame: main, look: mainLook, main: true, visible: true });
  const { kept, leftOut } = selectParts(
    frameLooks.map(({ look, visible }) => ({ elements: look.elements, texts: look.texts, visible })),
  );
  const [first, ...rest] = frameLooks.map((seen, at) => {
    const refs = references.add(number, seen.frame, seen.look.elements.length);
    return frameOf(seen, refs, kept[at]!);
  });
  const dialogs = page.dialogs.map((words): TextBlock => ({
    text: words,
    box: { x: 0, y: 0, width: 1, height: 1 },
    tag: 'dialog',
    role: 'alertdialog',
    classes: '',
    inDialog: true,
    live: true,
    visible: true,
  }));
  const basicAuth = challengeOf(page, mainLook.origin);
  const { status } = page.traffic;
  return {
    url: mainLook.url,
    title: mainLook.title,
    ...(mainLook.lang !== undefined && { lang: mainLook.lang }),
    frames: [{ ...first!, texts: [...dialogs, ...first!.texts].slice(0, MOST_TEXTS) }, ...rest],
    ...(basicAuth && { basicAuth }),
    ...(status !== undefined && { httpStatus: status }),
    loading: mainLook.state !== 'complete' || page.traffic.navigating,
    ...(page.traffic.asking && { requesting: true }),
    ...(leftOut && { leftOut }),
  };
}

interface Seen {
  frame: FrameWorld;
  look: Look;
  main: boolean;
  box?: Box;
  visible: boolean;
}

function frameOf({ frame, look, main, box, visible }: Seen, refs: string[], kept: Kept): FrameSnapshot {
  const unseen = visible ? {} : { visible: false, inViewport: false };
  return {
    frameId: frame.frameId,
    url: look.url,
    origin: look.origin,
    main,
    ...(box && { box }),
    visible,
    elements: kept.elements.map((i): El => defined<El>({ ...look.elements[i]!, ref: refs[i]!, ...unseen })),
    texts: kept.texts.map((i) => defined<TextBlock>({ ...look.texts[i]!, ...(!visible && { visible: false }) })),
    truncated: look.truncated || kept.elements.length < look.elements.length || kept.texts.length < look.texts.length,
  };
}

/** Without the fields that are undefined. */
function defined<T>(value: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}
