import { randomBytes } from 'node:crypto';
import { Overdue, within } from '../../lib/deadline.ts';
import { anyText, object } from '../../lib/shape.ts';
import { isEvaluated } from '../cdp/shapes.ts';
import type { Params } from '../cdp/protocol.ts';
import type { HiddenPages } from './hidden-pages.ts';

/** The browser's clipboard, which on a headful session is the display's: shared by all copies and pastes. */
export interface Clipboard {
  read(): Promise<string>;
  write(text: string): Promise<void>;
}

/** The deadline for one use, including the wait for a page. */
const PATIENCE_MS = 30_000;

/**
 * CDP has no clipboard command, but pages have an API. So a hidden page uses that, on an origin that no other page can have and that is
 * served without the network, with the permission for that origin alone.
 */
export function browserClipboard(hidden: HiddenPages): Clipboard {
  const origin = `https://${randomBytes(12).toString('hex')}.invalid`;
  const permissions: Params<'Browser.grantPermissions'>['permissions'] = [
    'clipboardReadWrite',
    'clipboardSanitizedWrite',
  ];
  let granted: Promise<unknown> | undefined;

  const evaluate = (expression: string) => within(PATIENCE_MS, 'The browser', inPage(expression));

  async function inPage(expression: string): Promise<unknown> {
    granted ??= hidden.client.send('Browser.grantPermissions', { origin, permissions });
    await granted.catch((error: Error) => {
      granted = undefined;
      if (error instanceof Overdue) throw error;
    });
    return hidden.use(async (page) => {
      const stop = page.on('Fetch.requestPaused', hasRequestId, ({ requestId }) => {
        const responseHeaders = [{ name: 'content-type', value: 'text/html' }];
        page.send('Fetch.fulfillRequest', { requestId, responseCode: 200, responseHeaders, body: '' }).catch(() => {});
      });
      try {
        await page.send('Fetch.enable', {});
        await page.send('Page.navigate', { url: `${origin}/` });
        await page.send('Fetch.disable');
        await page.send('Emulation.setFocusEmulationEnabled', { enabled: true });
        const options = { expression, awaitPromise: true, userGesture: true, returnByValue: true };
        const { result, exceptionDetails } = await page.ask(isEvaluated, 'Runtime.evaluate', options);
        await page.send('Emulation.setFocusEmulationEnabled', { enabled: false });
        const { description } = result;
        if (exceptionDetails)
          throw new Error(typeof description === 'string' ? description : 'The clipboard could not be used.');
        return result['value'];
      } finally {
        stop();
      }
    }, AbortSignal.timeout(PATIENCE_MS));
  }

  return {
    async read() {
      const text = await evaluate('navigator.clipboard.readText()');
      return typeof text === 'string' ? text : '';
    },
    async write(text) {
      await evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
    },
  };
}

const hasRequestId = object({ requestId: anyText });
