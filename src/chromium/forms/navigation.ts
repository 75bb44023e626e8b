import { within } from '../../lib/deadline.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { AttachedPage, AttachedPages, PageCommands } from './attached-pages.ts';
import { isNavigated } from '../cdp/frame-shapes.ts';
import { isNavigatedWithin, isNavigation, isOver, isRequestSent, isResponseReceived } from './shapes.ts';
import { FormsError, type Navigated } from './types.ts';

/** How long an address may take to answer. */
const NAVIGATE_MS = 45_000;

/** Reports requests and documents to each page's traffic. */
export function followTraffic(client: LocalClient, pages: AttachedPages): void {
  const trafficOf = (sessionId: string | undefined) => pages.ofSession(sessionId)?.traffic;
  client.on('Network.requestWillBeSent', isRequestSent, ({ requestId, loaderId, request, type, frameId }, sessionId) =>
    trafficOf(sessionId)?.sent({ sessionId: sessionId!, requestId, loaderId, ...request, type, frameId }),
  );
  client.on('Network.responseReceived', isResponseReceived, ({ requestId, type, frameId, response }, sessionId) =>
    trafficOf(sessionId)?.response({ requestId, type, frameId, status: response.status }),
  );
  for (const event of ['Network.loadingFinished', 'Network.loadingFailed'] as const)
    client.on(event, isOver, ({ requestId }, sessionId) => trafficOf(sessionId)?.over(requestId));
  client.on('Page.frameNavigated', isNavigated, ({ frame }, sessionId) =>
    trafficOf(sessionId)?.committed(frame.id, frame.loaderId),
  );
  client.on('Page.navigatedWithinDocument', isNavigatedWithin, (_, sessionId) => trafficOf(sessionId)?.stirred());
}

export function navigation(client: LocalClient, commands: PageCommands) {
  /** Chromium answers when the navigation is committed or has failed; a server that never answers times out. */
  async function goTo(page: AttachedPage, url: string): Promise<Navigated> {
    const { sessionId, traffic } = page;
    page.dialogs = [];
    traffic.mark();
    const params = { url };
    await toFront(page).catch(() => {}); // a page that hangs may still go elsewhere
    const going = client.ask(isNavigation, 'Page.navigate', params, sessionId, { patient: true });
    const { loaderId, errorText } = await within(NAVIGATE_MS, 'The page', going).catch((error: Error) => {
      if (page.gone || client.closeCode !== undefined) throw new FormsError('page_gone', 'The page is closed.');
      if (error.name !== 'Overdue') return { loaderId: undefined, errorText: 'net::ERR_FAILED' };
      client.send('Page.stopLoading', {}, sessionId).catch(() => {});
      return { loaderId: undefined, errorText: 'net::ERR_TIMED_OUT' };
    });
    const status = loaderId === undefined ? traffic.status : traffic.statusOf(loaderId);
    // A challenge that was answered with nothing is a document like any other.
    if (errorText !== undefined && status === undefined) return { error: errorText };
    return status === undefined ? {} : { status };
  }

  async function again(page: AttachedPage): Promise<Navigated> {
    const { sessionId, traffic } = page;
    page.dialogs = [];
    traffic.mark();
    const before = traffic.committedAt;
    const committed = new Promise<void>((resolve) => {
      const stop = traffic.listen(() => {
        if (traffic.committedAt === before && !page.gone) return;
        stop();
        resolve();
      });
    });
    // The document may come before the answer.
    await commands.send(commands.patience.main, sessionId, 'Page.reload', {});
    try {
      await within(NAVIGATE_MS, 'The page', committed);
    } catch {
      client.send('Page.stopLoading', {}, sessionId).catch(() => {});
      return { error: 'net::ERR_TIMED_OUT' };
    }
    if (page.gone) throw new FormsError('page_gone', 'The page is closed.');
    return traffic.status === undefined ? {} : { status: traffic.status };
  }

  /** A full browser slows down the timers of pages behind others, and refuses them passkeys. */
  async function toFront({ sessionId }: AttachedPage): Promise<void> {
    await commands.send(commands.patience.step, sessionId, 'Page.bringToFront', {});
  }

  return { goTo, again, toFront };
}
