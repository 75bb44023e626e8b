import { expect, test } from 'vitest';
import type { AttachedPage, PageCommands } from './attached-pages.ts';
import { usual } from './bounds.ts';
import { pageFrames } from './frames.ts';

test('a frame is the same while it and all frames around it have the documents that were listed', async () => {
  const loaders = { page: 'one', frame: 'two' };
  const answers: Record<string, () => unknown> = {
    'Page.getFrameTree': () => ({
      frameTree: {
        frame: { id: 'page', loaderId: loaders.page, url: '' },
        childFrames: [{ frame: { id: 'frame', parentId: 'page', loaderId: loaders.frame, url: '' } }],
      },
    }),
    'Page.createIsolatedWorld': () => ({ executionContextId: 1 }),
    'Runtime.evaluate': () => ({ result: { objectId: 'script' } }),
  };
  const ask = (_ms: number, _session: string, _is: unknown, method: string) => Promise.resolve(answers[method]!());
  const frames = pageFrames({ patience: usual, ask } as unknown as PageCommands, 'world');
  const [, frame] = await frames.worlds({
    pageId: 'page',
    sessionId: 's',
    sessions: new Map([['s', 'page']]),
  } as AttachedPage);
  await frames.mustBeSame(frame!, 100);
  for (const changed of [{ page: 'three' }, { frame: 'three' }]) {
    Object.assign(loaders, { page: 'one', frame: 'two' }, changed);
    await expect(frames.mustBeSame(frame!, 100)).rejects.toMatchObject({ fault: 'stale' });
  }
});
