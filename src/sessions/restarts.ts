import type { BrowserState } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { ProfileSelector } from '../profiles/schema.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import { unlessWritten } from './admission.ts';
import type { LiveSession } from './live-session.ts';
import type { LoadedExtensions } from './loaded-extensions.ts';
import { optionsOf, requestOf, viewportOf, withProfile } from './request.ts';
import { notFoundIfEnded, type Roster } from './roster.ts';
import { openStartUrl } from './start-url.ts';
import type { SessionRow, SessionStore } from './store.ts';

export type Restarts = ReturnType<typeof restarts>;

/** A profile that is claimed and unpacked for a session. */
interface ReadyProfile {
  /** Answers with the profile's id if the session is to save it. */
  load(): Promise<string | undefined>;
  /** The session stays without it. */
  discard(): Promise<void>;
}

/**
 * Changes that a running browser cannot take: a profile, and extensions for the headless shell. The session keeps its id, its addresses
 * and its place; its browser is stopped and another one is started.
 */
export function restarts({
  store,
  browsers,
  profiles,
  extensions,
  roster,
  log,
}: {
  store: SessionStore;
  browsers: Browsers;
  profiles: Pick<ProfileService, 'choose' | 'open'>;
  extensions: LoadedExtensions;
  roster: Pick<Roster, 'get'>;
  log: Log;
}) {
  async function asItIsNow(id: string): Promise<Partial<BrowserOptions>> {
    const row = await store.find(id);
    if (!row) return {};
    return {
      viewport: viewportOf(row),
      ...(extensions.any(id) ? { needsFullBrowser: true } : {}),
      ...(row.profile_id === null ? {} : withProfile('cookies')),
    };
  }

  /**
   * Claims a profile for a session that has none, and unpacks it beside the browser's files. The browser runs on as it was until `load`,
   * and the session has to be held until then, so that it does not time out.
   */
  async function prepareProfile(row: SessionRow, selector: ProfileSelector): Promise<ReadyProfile> {
    const { id } = row;
    const session = roster.get(id);
    const profile = await profiles.choose(row.project_id, selector);
    const saves = selector.save_changes === true;
    const claimed = await unlessWritten(store, id, saves && !selector.force ? profile.id : null, (store) =>
      store.attachProfile(id, profile.id, saves),
    );
    if (!claimed) throw errors.profile_loaded({ session: id, profile: (await store.find(id))?.profile_id ?? '' });
    let beside: Awaited<ReturnType<Browsers['unpackBeside']>> | undefined;

    async function discard(): Promise<void> {
      await beside?.discard();
      await store.detachProfile(id);
      // Files that are unpacked after the end of the session are removed only here.
      if (session.ending) await session.end(session.ending).then(() => browsers.remove(id));
    }

    try {
      const saved = await profiles.open(profile.id);
      const resume = saved && !row.start_url ? 'tabs' : 'cookies';
      const unpacked = (beside = await browsers.unpackBeside(id, saved?.bytes, resume === 'tabs'));
      return {
        discard,
        load: () => load(session, row, { unpacked, resume }).then(() => (saves ? profile.id : undefined)),
      };
    } catch (error) {
      await discard();
      throw error;
    }
  }

  /** Restarts the browser with the profile, at the same addresses. */
  async function load(
    session: LiveSession,
    row: SessionRow,
    { unpacked, resume }: { unpacked: { swap(): Promise<void> }; resume: 'tabs' | 'cookies' },
  ): Promise<void> {
    const { id } = row;
    const now = { ...optionsOf(requestOf(row)), ...(await asItIsNow(id)), resume } as const;
    const restart = session.restart(async (signal, proxy) => {
      await unpacked.swap();
      const started = await browsers.start(id, { ...now, proxy }, () => session.whenGone(), signal);
      const engine = await extensions.again(id, started);
      if (row.start_url) void openStartUrl(engine, row.start_url, log);
      return engine;
    }, 'The browser is started again with a profile. Connect again to the same address.');
    await restart.catch((error: Error) => notFoundIfEnded(id, error));
  }

  /** Replaces the headless shell by the full browser. */
  async function startAnew(row: SessionRow): Promise<void> {
    const { id } = row;
    const session = roster.get(id);
    const now = { ...optionsOf(requestOf(row)), ...(await asItIsNow(id)), needsFullBrowser: true };
    let was: BrowserState | undefined;
    await session
      .restart(
        async (signal, proxy) => {
          const engine = await browsers.start(id, { ...now, proxy }, () => session.whenGone(), signal);
          await engine.resume(was!);
          return engine;
        },
        'The browser is started again as one that runs extensions. Connect again to the same address.',
        async (shell) => {
          if (shell.browser.kind !== 'headless-shell') return false; // a concurrent request replaced it already
          was = await shell.state();
          return true;
        },
      )
      .catch((error: Error) => notFoundIfEnded(id, error));
  }

  return { asItIsNow, prepareProfile, startAnew };
}
