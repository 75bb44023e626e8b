import { HOME } from '../sandbox/mounts.ts';
import type { Params } from './protocol.ts';

/** The directory of a session's downloads, with their original names. */
const DOWNLOADS = `${HOME}/Downloads`;

/** Downloads go to the directory that the file API expects, unless a client chooses another one. */
export const toDownloads: Params<'Browser.setDownloadBehavior'> = {
  behavior: 'allow',
  downloadPath: DOWNLOADS,
  eventsEnabled: false,
};

/**
 * The behaviour that a client requests by Browser.setDownloadBehavior. Whenever it connects, Playwright requests a generated directory of
 * the machine it runs on, where downloads would not be found. A directory that a client chose is kept.
 */
export function meantDownloads(params: object): object {
  const { behavior, downloadPath } = params as { behavior?: unknown; downloadPath?: unknown };
  const madeUp =
    behavior === 'allowAndName' &&
    typeof downloadPath === 'string' &&
    /[/\\]playwright-artifacts-[^/\\]{1,32}$/.test(downloadPath);
  return madeUp ? { ...params, behavior: 'allow', downloadPath: DOWNLOADS } : params;
}
