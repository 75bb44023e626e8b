import { HOME } from '../sandbox/mounts.ts';
import type { Params } from './protocol.ts';

/** Where a session's downloads are found, under their own names. */
const DOWNLOADS = `${HOME}/Downloads`;

/** Downloads go where the session's files are looked for, unless a client wants them elsewhere. */
export const toDownloads: Params<'Browser.setDownloadBehavior'> = {
  behavior: 'allow',
  downloadPath: DOWNLOADS,
  eventsEnabled: false,
};

/**
 * What a client asks for by Browser.setDownloadBehavior. Playwright asks for a directory of the machine it runs on, which it makes
 * up, whenever it connects; nobody would find anything there. A directory that somebody chose is theirs to choose.
 */
export function meantDownloads(params: object): object {
  const { behavior, downloadPath } = params as { behavior?: unknown; downloadPath?: unknown };
  const madeUp =
    behavior === 'allowAndName' &&
    typeof downloadPath === 'string' &&
    /[/\\]playwright-artifacts-[^/\\]{1,32}$/.test(downloadPath);
  return madeUp ? { ...params, behavior: 'allow', downloadPath: DOWNLOADS } : params;
}
