import type { AttachedPage, PageCommands } from './attached-pages.ts';
import { MOST_FRAMES } from './bounds.ts';
import { isFrameTree, type FrameTree } from '../cdp/frame-shapes.ts';
import { isInstalled, isOwner, isResolved, isWorld } from './shapes.ts';
import { FormsError } from './types.ts';
import { installed } from './world-script.ts';

/**
 * A document in a frame, and the isolated world in it where the forms' script runs. Calls name the script by its object: a new process of
 * the page counts contexts from 1 again, so the number of a context can become that of a script of another site.
 */
export interface FrameWorld {
  readonly frameId: string;
  readonly sessionId: string;
  readonly contextId: number;
  /** The functions of the script, as an object in the browser. It ends with the document. */
  readonly script: string;
  readonly loaderId: string;
  readonly parent: FrameWorld | undefined;
}

interface Known {
  frameId: string;
  parentId: string | undefined;
  loaderId: string;
  sessionId: string;
}

export function pageFrames(commands: PageCommands, worldName: string) {
  const { patience } = commands;

  async function treeOf(ms: number, sessionId: string): Promise<Known[]> {
    const { frameTree } = await commands.ask(ms, sessionId, isFrameTree, 'Page.getFrameTree', {});
    const list: Known[] = [];
    const walk = ({ frame, childFrames }: FrameTree) => {
      list.push({ frameId: frame.id, parentId: frame.parentId, loaderId: frame.loaderId, sessionId });
      for (const child of childFrames ?? []) walk(child);
    };
    walk(frameTree);
    return list;
  }

  /** The frames of the page, the main one first, parents before children. */
  async function list(page: AttachedPage): Promise<Known[]> {
    const trees = await Promise.all(
      [...page.sessions.keys()].map((sessionId) =>
        sessionId === page.sessionId
          ? treeOf(patience.main, sessionId)
          : treeOf(patience.frame, sessionId).catch(() => []),
      ),
    );
    // A frame in another process is in its own tree; its parent's may still list it. Its own knows its document.
    const known = new Map<string, Known>();
    for (const frame of trees.flat()) {
      const before = known.get(frame.frameId);
      known.set(frame.frameId, { ...frame, parentId: frame.parentId ?? before?.parentId });
    }
    return [...known.values()].slice(0, MOST_FRAMES * 5);
  }

  async function worldIn({ frameId, loaderId, sessionId }: Known, ms: number): Promise<Omit<FrameWorld, 'parent'>> {
    const { executionContextId } = await commands.ask(ms, sessionId, isWorld, 'Page.createIsolatedWorld', {
      frameId,
      worldName,
    });
    const { result, exceptionDetails } = await commands.ask(ms, sessionId, isInstalled, 'Runtime.evaluate', {
      expression: installed(),
      contextId: executionContextId,
    });
    if (exceptionDetails !== undefined) throw new FormsError('stale', 'The page could not be read.');
    return { frameId, loaderId, sessionId, contextId: executionContextId, script: result.objectId };
  }

  return {
    /** A world in each frame's document. Frames that do not answer in time are left out, except for the main one. */
    async worlds(page: AttachedPage): Promise<[FrameWorld, ...FrameWorld[]]> {
      const frames = (await list(page)).slice(0, MOST_FRAMES);
      const made = await Promise.all(
        frames.map((frame) =>
          frame.frameId === page.pageId
            ? worldIn(frame, patience.main)
            : worldIn(frame, patience.frame).catch(() => undefined),
        ),
      );
      const byId = new Map<string, FrameWorld>();
      for (const [at, world] of made.entries()) {
        if (!world) continue;
        const parentId = frames[at]!.parentId;
        if (world.frameId !== page.pageId && !byId.has(parentId ?? '')) continue; // its parent did not answer
        byId.set(world.frameId, { ...world, parent: byId.get(parentId ?? '') });
      }
      const [main, ...others] = [...byId.values()];
      if (!main) throw new FormsError('stale', 'The page has no document.');
      return [main, ...others];
    },

    /**
     * Throws unless a frame, and each one around it, still has the document that it had when it was listed. Its world was made after
     * that, so the world is one of this document, and not of another one that came between the two.
     */
    async mustBeSame(frame: FrameWorld, ms: number): Promise<void> {
      const chain: FrameWorld[] = [];
      for (let at: FrameWorld | undefined = frame; at; at = at.parent) chain.push(at);
      const sessions = [...new Set(chain.map(({ sessionId }) => sessionId))];
      const known = (await Promise.all(sessions.map((sessionId) => treeOf(ms, sessionId)))).flat();
      const isSame = (one: FrameWorld) =>
        known.some(
          ({ frameId, loaderId, sessionId }) =>
            frameId === one.frameId && loaderId === one.loaderId && sessionId === one.sessionId,
        );
      if (!chain.every(isSame)) throw new FormsError('stale', 'The page has changed since it was read.');
    },

    /** The element of the parent's document that shows the frame, as an object in the parent's world. */
    async ownerOf(frame: FrameWorld, ms = patience.frame): Promise<{ objectId: string; parent: FrameWorld }> {
      const { parent } = frame;
      if (!parent) throw new FormsError('stale', 'The frame is not in the page any more.');
      const { frameId } = frame;
      const { backendNodeId } = await commands.ask(ms, parent.sessionId, isOwner, 'DOM.getFrameOwner', { frameId });
      const { object } = await commands.ask(ms, parent.sessionId, isResolved, 'DOM.resolveNode', {
        backendNodeId,
        executionContextId: parent.contextId,
      });
      if (object.objectId === undefined) throw new FormsError('stale', 'The frame is not in the page any more.');
      return { objectId: object.objectId, parent };
    },
  };
}

export type PageFrames = ReturnType<typeof pageFrames>;
