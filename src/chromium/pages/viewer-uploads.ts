import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import { fileChoosers } from './file-choosers.ts';
import { viewerFiles, type SessionFiles } from './viewer-files.ts';
import type { Shown, Viewer } from './viewer.ts';

/** Files for the tab that a viewer of the screencast sees. */
export function viewerUploads(viewer: Viewer, mux: Pick<Mux, 'choosesFiles'>, files: SessionFiles) {
  const { client } = viewer;
  const box = viewerFiles({
    files,
    tell: (message) => viewer.tell(message),
    unsent: () => viewer.sink.bufferedAmount,
    dropAt(place) {
      const sessionId = viewer.shown?.sessionId;
      return sessionId === undefined ? undefined : (paths) => drop(client, sessionId, place, paths);
    },
  });
  void client.closed.then(() => box.close());

  const choosers = fileChoosers(client, mux, ({ pageSession, several, give }) => {
    if (!viewer.over && viewer.shown?.sessionId === pageSession) box.choose(give, several);
  });

  return {
    take: box.take,
    start({ id, sessionId }: Shown): void {
      if (sessionId !== undefined) choosers.watch({ targetId: id, sessionId }).catch(() => {}); // the tab is closed
    },
  };
}

/** Drops files at a place of the page, in CSS pixels. */
export async function drop(
  client: LocalClient,
  sessionId: string,
  { x, y }: { x: number; y: number },
  paths: readonly string[],
): Promise<void> {
  const data = { items: [], files: [...paths], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await client.send('Input.dispatchDragEvent', { type, x, y, data }, sessionId);
}
