import type { BrowserState } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { ProfileSelector } from '../profiles/schema.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import { unlessWritten } from './admission.ts';
import type { LiveSession } from './live-session.ts';
import type { LoadedExtensions } from './loaded-extensions.ts';
import { optionsOf, requestOf, withProfile } from './request.ts';
import { awake, notFoundIfEnded, type Roster } from './roster.ts';
import { openStartUrl } from './start-url.ts';
import type { SessionRow, SessionStore } from './store.ts';

export type Restarts = ReturnType<typeof restarts>;

/**
 * What cannot be given to a browser that runs: a profile, and extensions to the headless shell. The session keeps its id, its
 * addresses and its place; its browser is stopped and another one is started in its stead.
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
    const { viewport_width: width, viewport_height: height, refresh_rate } = row;
    const viewport = { width, height, ...(refresh_rate === null ? {} : { refreshRate: refresh_rate }) };
    return {
      viewport,
      ...(extensions.any(id) ? { needsFullBrowser: true } : {}),
      ...(row.profile_id === null ? {} : withProfile('cookies')),
    };
  }

  /**
   * Gives a profile to a session that has none: its browser is stopped and started again with it, at the same addresses. A profile
   * that cannot be had leaves the session as it was. Answers with the profile, if the session is to write it back.
   */
  async function attachProfile(row: SessionRow, selector: ProfileSelector): Promise<string | undefined> {
    const session = roster.get(row.id);
    const held = await awake(session);
    // Unpacking takes as long as it takes: it must not idle out meanwhile.
    return attachTo(session, row, selector).finally(() => held.release());
  }

  async function attachTo(
    session: LiveSession,
    row: SessionRow,
    selector: ProfileSelector,
  ): Promise<string | undefined> {
    const { id } = row;
    const profile = await profiles.choose(row.project_id, selector);
    const saves = selector.save_changes === true;
    const claimed = await unlessWritten(store, id, saves && !selector.force ? profile.id : null, (store) =>
      store.attachProfile(id, profile.id, saves),
    );
    if (!claimed) throw errors.profile_loaded({ session: id, profile: (await store.find(id))?.profile_id ?? '' });
    try {
      const saved = await profiles.open(profile.id);
      const resume = saved && !row.start_url ? 'tabs' : 'cookies';
      const beside = await browsers.unpackBeside(id, saved?.bytes, resume === 'tabs');
      const now = { ...optionsOf(requestOf(row)), ...(await asItIsNow(id)), resume } as const;
      const restart = session.restart(async (signal, proxy) => {
        await beside.swap();
        const started = await browsers.start(id, { ...now, proxy }, () => session.whenGone(), signal);
        const engine = await extensions.again(id, started);
        if (row.start_url) void openStartUrl(engine, row.start_url, log);
        return engine;
      }, 'The browser is started again with a profile. Connect again to the same address.');
      await restart.catch(async (error: Error) => {
        await beside.discard();
        notFoundIfEnded(id, error);
      });
      return saves ? profile.id : undefined;
    } catch (error) {
      await store.detachProfile(id);
      // What was unpacked after the end of the session is in nobody's way to be removed but ours.
      if (session.ending) await session.end(session.ending).then(() => browsers.remove(id));
      throw error;
    }
  }

  /** The full browser in the place of the headless shell. */
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
          if (shell.browser.kind !== 'headless-shell') return false; // somebody was quicker
          was = await shell.state();
          return true;
        },
      )
      .catch((error: Error) => notFoundIfEnded(id, error));
  }

  return { asItIsNow, attachProfile, startAnew };
}
