import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';

/** Opens a page in the browser. No request waits for it, so a failure is only logged. */
export async function openStartUrl(engine: Engine, url: string, log: Log): Promise<void> {
  await engine
    .open(absolute(url))
    .catch((error: Error) => log.info({ error: error.message }, 'session.start_url_failed'));
}

/** A bare host gets https, as in an address bar. */
const absolute = (url: string) =>
  /^[a-z][a-z0-9+.-]*:/i.test(url) && !/^[^/]*:\d+(\/|$)/.test(url) ? url : `https://${url}`;
