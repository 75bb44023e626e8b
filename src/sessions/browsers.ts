import { mkdir, readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Limits } from '../chromium/sandbox/cgroup-limits.ts';
import type { Destinations } from '../chromium/egress/destinations.ts';
import type { OwnEndpoint } from '../chromium/egress/gateway.ts';
import { startEngine, type Engine } from '../chromium/engine.ts';
import { addExtension } from '../chromium/sandbox/furnish.ts';
import {
  ArchiveError,
  forgetTabs,
  packProfile,
  unpackBeside,
  unpackProfile,
} from '../chromium/browser/profile-archive.ts';
import type { Toolbox } from '../chromium/guest/toolbox.ts';
import type { Switches } from '../chromium/browser/flags.ts';
import { LaunchError, sweep, type Isolation, type LaunchOptions } from '../chromium/browser/launch.ts';
import type { OutOfMemory } from '../chromium/sandbox/memory-watch.ts';
import { removeTree } from '../chromium/sandbox/outside.ts';
import type { Claim } from '../chromium/sandbox/owners.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import { errors } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { onBehalfOf } from '../lib/scope.ts';

/** With less than this, no browser can write its profile. */
const leastBytes = 1024 * 1024;

/** Everything about a browser that is fixed when it starts. */
export type BrowserOptions = Switches &
  Pick<LaunchOptions, 'headless' | 'viewport' | 'policy' | 'needsFullBrowser' | 'resume'>;

/** The parts of a browser's environment that may change while it runs. */
interface Surroundings {
  proxy?: Proxy | undefined;
}

export type Browsers = ReturnType<typeof browsers>;

/** Starts browsers, each in a directory of its own below `dir`, and cleans up after them. */
export function browsers({
  dir,
  isolation,
  toolbox,
  allowUnsandboxed,
  allow,
  ownEndpointOf,
  launchSeconds,
  limits,
  searchUrl,
  log,
}: {
  dir: string;
  isolation: Isolation;
  toolbox: Toolbox;
  allowUnsandboxed: boolean;
  allow: Destinations;
  /** The way of a session to its own CDP address. */
  ownEndpointOf?: (sessionId: string) => OwnEndpoint;
  launchSeconds: number;
  limits: Limits;
  /** Where headful browsers search for words in their address bar; empty or left out for Chromium's own choice. */
  searchUrl?: string;
  log: Log;
}) {
  const home = (id: string) => join(dir, id);
  /** The owner of each session's directory, from its first browser until the directory is removed. */
  const owners = new Map<string, Claim>();

  let startedAt: number | undefined;
  let outOfMemory = (_id: string, _report: OutOfMemory) => {};
  let failed = (_id: string) => {};

  /** Runs the work of a session. A fault of the service in it, or in what it starts, ends that session. */
  const workFor = <T>(id: string, work: () => T): T => onBehalfOf({ kind: 'session', id, end: () => failed(id) }, work);

  function confinementOf(id: string) {
    const owner = owners.get(id) ?? isolation.owners.claim(home(id));
    owners.set(id, owner);
    return { sandboxed: isolation.sandboxed, owner };
  }

  return {
    async start(
      id: string,
      { proxy, ...options }: BrowserOptions & Surroundings,
      whenGone: () => { code: number; reason: string },
      signal?: AbortSignal,
      /** The profile's archive, for a home directory that has no profile yet. */
      profile?: AsyncIterable<Buffer>,
    ): Promise<Engine> {
      if (isolation.refusal !== undefined && !allowUnsandboxed) throw errors.no_sandbox({ reason: isolation.refusal });
      const deadline = AbortSignal.timeout(launchSeconds * 1000);
      const until = signal ? AbortSignal.any([deadline, signal]) : deadline;
      const onOutOfMemory = (detail: string, report: OutOfMemory) => {
        log.warn({ session: id, detail }, 'session.out_of_memory');
        outOfMemory(id, report);
      };
      const at = home(id);
      try {
        const confinement = confinementOf(id);
        if (profile)
          await unpackProfile(
            { dir: at, isolation: confinement, bytes: profile, tabs: options.resume === 'tabs' },
            until,
          );
        const { owner } = confinement;
        const how = {
          launch: { dir: at, ...options, limits, searchUrl, onOutOfMemory, isolation, owner },
          toolbox,
          allowUnsandboxed,
          allow,
          ownEndpoint: ownEndpointOf?.(id),
          proxy,
          log,
          whenGone,
        };
        const engine = await workFor(id, () => startEngine(how, until)); // also if a request is what restarts it
        startedAt = performance.now();
        return engine;
      } catch (error) {
        const full = saysFull(error) || (await isFull(dir)); // before the written files are removed
        await remove(id);
        if (signal?.aborted) throw signal.reason; // the caller that aborted gave the reason
        throw refusal(error, { full, dir, lateSeconds: deadline.aborted ? launchSeconds : undefined });
      }
    },

    /** Prepares the user data that `swap` gives the browser at its next start: a profile's, or none. */
    async unpackBeside(id: string, profile: AsyncIterable<Buffer> | undefined, tabs: boolean) {
      const deadline = AbortSignal.timeout(launchSeconds * 1000);
      return unpackBeside({ dir: home(id), isolation: confinementOf(id), bytes: profile, tabs }, deadline).catch(
        async (error: Error) => {
          throw refusal(error, { full: saysFull(error) || (await isFull(dir)), dir, lateSeconds: undefined });
        },
      );
    },

    /** Creates a directory that `engine.loadExtension` finds by this name. False: it exists already. */
    async addExtension(id: string, name: string, fill: (to: string) => Promise<void>): Promise<boolean> {
      return addExtension(home(id), { name, owner: confinementOf(id).owner }, fill).catch((error: Error) => {
        throw saysFull(error) ? errors.storage_full({ path: dir }, { cause: error }) : error;
      });
    },

    removeExtension: (id: string, name: string): Promise<void> =>
      removeTree(join(home(id), 'extensions', name), isolation).catch((error: Error) =>
        log.warn({ session: id, extension: name, error: error.message }, 'extension.directory_left'),
      ), // it is removed with the session

    /** The profile in the session's home directory as an archive, after its browser has exited. */
    pack: (id: string, signal: AbortSignal): AsyncIterable<Buffer> => packProfile(home(id), confinementOf(id), signal),

    forgetTabs: (id: string, signal: AbortSignal): Promise<void> => forgetTabs(home(id), confinementOf(id), signal),

    remove,

    workFor,

    /** Calls this when the service has failed in the work of a session. */
    onFault: (listener: typeof failed) => void (failed = listener),

    /** Calls this whenever processes of a session were ended for lack of memory. */
    onOutOfMemory: (listener: typeof outOfMemory) => void (outOfMemory = listener),

    /** When a browser was last started, by the monotonic clock. */
    startedAt: () => startedAt,

    /** Removes the processes, cgroups and directories that a killed service left. Runs before the first start. */
    async sweep(): Promise<void> {
      await mkdir(dir, { recursive: true, mode: 0o711 });
      await sweep(dir);
      for (const name of await readdir(dir)) await remove(name);
    },
  };

  async function remove(id: string) {
    const at = home(id);
    await removeTree(at, isolation).catch((error: Error) =>
      log.error({ session: id, error: error.message }, 'session.directory_left'),
    );
    owners.get(id)?.release(); // freed once the directory is removed, if it still exists
    owners.delete(id);
  }
}

/** Asks the file system: Chromium reports a full disk differently, and Node's recursive mkdir reports ENOSPC as ENOENT. */
async function isFull(dir: string): Promise<boolean> {
  const found = await statfs(dir).catch(() => undefined);
  if (!found) return false;
  const { bavail, bsize, files, ffree } = found;
  return bavail * bsize < leastBytes || (files > 0 && ffree === 0);
}

function saysFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

function refusal(
  error: unknown,
  { full, dir, lateSeconds }: { full: boolean; dir: string; lateSeconds: number | undefined },
) {
  const wouldStart = !(error instanceof LaunchError) || error.code === 'did_not_start';
  if (full && wouldStart) return errors.storage_full({ path: dir }, { cause: error });
  if (lateSeconds !== undefined) {
    const log = error instanceof LaunchError ? error.log.slice(-5).join('\n') : '';
    return errors.browser_did_not_start(
      { detail: `it was not ready within ${lateSeconds} s.${log && ` The end of its log:\n${log}`}` },
      { cause: error },
    );
  }
  if (error instanceof ArchiveError)
    return errors.browser_did_not_start(
      { detail: `its profile could not be unpacked. ${error.message}` },
      { cause: error },
    );
  if (!(error instanceof LaunchError)) return error;
  switch (error.code) {
    case 'gpu_unavailable':
      return errors.gpu_unavailable({ detail: error.message });
    case 'display_unavailable':
    case 'engine_missing':
    case 'policy_unavailable':
      return errors.engine_unavailable({ detail: error.message });
    case 'did_not_start':
      return errors.browser_did_not_start({ detail: error.message }, { cause: error });
  }
}
