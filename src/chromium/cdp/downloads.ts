import { normalize } from 'node:path/posix';
import { withoutEnd } from '../../lib/text.ts';
import { HOME } from '../sandbox/mounts.ts';
import { downloads as DOWNLOADS, incoming as INCOMING } from '../sandbox/session-files.ts';
import type { Params } from './protocol.ts';

/** Gives a complete download its name in the session; returns its path there, or undefined if it is not in the directory for them. */
export type KeepDownload = (download: { guid: string; name: string }) => Promise<string | undefined>;

type Behaviour = Params<'Browser.setDownloadBehavior'>;

/** Chromium overwrites files of the same name, but not of the same id; so each download gets its name when it is complete. */
const incoming: Behaviour = { behavior: 'allowAndName', downloadPath: INCOMING, eventsEnabled: true };

/** The most that are named at once; only a compromised browser has more. */
const MOST_AT_ONCE = 100;
/** Enough for every download that events may still mention; the oldest are dropped. */
const REMEMBERED = 1000;

/** The downloads of a browser: their directory, unless a client chose one in the session, and their names. */
export class Downloads {
  readonly #keep: KeepDownload;
  readonly #set: (behaviour: Behaviour) => void;
  readonly #names = new Map<string, string>();
  #busy = 0;
  readonly #kept = new Map<string, Promise<string | undefined>>();

  constructor(keep: KeepDownload, set: (behaviour: Behaviour) => void) {
    this.#keep = keep;
    this.#set = set;
  }

  /** Sets where downloads of a context go: the default one, or one of a client. */
  take(browserContextId?: string): void {
    this.#set(browserContextId === undefined ? incoming : { ...incoming, browserContextId });
  }

  begun(guid: string, name: string): void {
    remember(this.#names, guid, name);
  }

  /** Called for every client that sees the download; it is named once. */
  complete(guid: string): Promise<string | undefined> {
    const known = this.#kept.get(guid);
    if (known) return known;
    if (this.#busy >= MOST_AT_ONCE) return Promise.resolve(undefined);
    this.#busy += 1;
    const kept = this.#keep({ guid, name: this.#names.get(guid) ?? 'download' })
      .catch(() => undefined)
      .finally(() => (this.#busy -= 1));
    this.#names.delete(guid);
    remember(this.#kept, guid, kept);
    return kept;
  }
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  if (map.size > REMEMBERED) map.delete(map.keys().next().value!);
}

/**
 * The behaviour that a client requests by Browser.setDownloadBehavior. A directory of the session that a client chose is kept. Other
 * directories are on the client's own machine: Playwright requests one whenever it connects, and BiDi's clients name theirs.
 */
export function meantDownloads(params: object): object {
  const { behavior, downloadPath } = params as { behavior?: unknown; downloadPath?: unknown };
  const meant = { ...params, behavior: incoming.behavior, downloadPath: INCOMING };
  if (behavior === 'default') return meant;
  if ((behavior !== 'allow' && behavior !== 'allowAndName') || typeof downloadPath !== 'string') return params;
  const named = behavior === 'allowAndName';
  if (named && /[/\\]playwright-artifacts-[^/\\]{1,32}$/.test(downloadPath)) return meant;
  const path = `${withoutEnd(normalize(downloadPath), '/')}/`;
  if (!named && path === `${DOWNLOADS}/`) return meant;
  return [`${HOME}/`, '/tmp/'].some((root) => path.startsWith(root)) ? params : meant;
}
