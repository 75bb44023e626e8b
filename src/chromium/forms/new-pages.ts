import { within } from '../../lib/deadline.ts';
import { object, text } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { isCreated } from '../cdp/shapes.ts';
import { FormsError } from './types.ts';

const BROWSER_MS = 15_000;

const isContext = object({ browserContextId: text(128) });

/** Opens and closes pages. A page that is alone has a browser context of its own, which ends with it. */
export function newPages(client: LocalClient) {
  const contexts = new Map<string, string>();

  const soon = <T>(work: Promise<T>): Promise<T> =>
    within(BROWSER_MS, 'The browser', work).catch(() => {
      throw new FormsError('frozen', 'The browser does not open another page.');
    });

  async function make(where: { browserContextId?: string } = {}): Promise<string> {
    const { targetId } = await client.ask(isCreated, 'Target.createTarget', { url: 'about:blank', ...where });
    return targetId;
  }

  async function makeAlone(): Promise<string> {
    const { browserContextId } = await client.ask(isContext, 'Target.createBrowserContext', { disposeOnDetach: true });
    const pageId = await make({ browserContextId });
    contexts.set(pageId, browserContextId);
    return pageId;
  }

  return {
    open: () => soon(make()),
    openAlone: () => soon(makeAlone()),

    async close(pageId: string, gone: boolean): Promise<void> {
      const browserContextId = contexts.get(pageId);
      contexts.delete(pageId);
      if (browserContextId === undefined && gone) return;
      const closing =
        browserContextId === undefined
          ? client.send('Target.closeTarget', { targetId: pageId })
          : client.send('Target.disposeBrowserContext', { browserContextId });
      await within(BROWSER_MS, 'The browser', closing).catch(() => {});
    },
  };
}
