import type { Engine } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { Loadable } from '../extensions/service.ts';
import { Overdue } from '../lib/deadline.ts';
import { oneAtATime } from '../lib/one-at-a-time.ts';
import type { Log } from '../lib/log.ts';
import type { Browsers } from './browsers.ts';

const mostOfASession = 20;

export type LoadedExtensions = ReturnType<typeof loadedExtensions>;

/** The extensions of this node's sessions, in the order in which they were loaded. */
export function loadedExtensions({
  browsers,
  log,
}: {
  browsers: Pick<Browsers, 'addExtension' | 'removeExtension'>;
  log: Log;
}) {
  const loaded = new Map<string, string[]>();
  const inOrder = oneAtATime(); // each request counts what the previous one loaded

  async function loadNow(id: string, engine: Engine, wanted: Loadable[]): Promise<void> {
    const before = loaded.get(id) ?? [];
    if (before.length + wanted.length > mostOfASession)
      throw errors.invalid_input({
        detail: `A session takes ${mostOfASession} extensions; this one has ${before.length}, and ${wanted.length} more do not fit.`,
      });
    const added: { name: string; id?: string }[] = [];
    try {
      for (const extension of wanted) {
        const { name } = extension;
        if (!(await browsers.addExtension(id, name, (to) => extension.unpack(to))))
          throw errors.invalid_input({ detail: `The session has an extension named '${name}' already.` });
        added.push({ name });
      }
      for (const extension of added) {
        extension.id = await engine.loadExtension(extension.name).catch((error: Error) => {
          if (error instanceof Overdue) throw error;
          const detail = error.message.replace(/^Extensions\.loadUnpacked: /, '');
          throw errors.extension_refused({ extension: extension.name, detail }, { cause: error });
        });
      }
      loaded.set(id, [...before, ...added.map(({ name }) => name)]);
    } catch (error) {
      // All are loaded or none.
      for (const extension of added.reverse()) {
        if (extension.id !== undefined) await engine.unloadExtension(extension.id).catch(() => {});
        await browsers.removeExtension(id, extension.name);
      }
      throw error;
    }
  }

  return {
    any: (id: string) => (loaded.get(id)?.length ?? 0) > 0,

    load(id: string, engine: Engine, wanted: Loadable[]): Promise<void> {
      return inOrder(id, () => loadNow(id, engine, wanted));
    },

    /** Loads the extensions into the session's next browser. A refused extension was accepted before; the others are still loaded. */
    async again(id: string, engine: Engine): Promise<Engine> {
      for (const name of loaded.get(id) ?? []) {
        await engine
          .loadExtension(name)
          .catch((error: Error) => log.warn({ session: id, extension: name, error: error.message }, 'extension.lost'));
      }
      return engine;
    },

    forget(id: string) {
      loaded.delete(id);
    },
  };
}
