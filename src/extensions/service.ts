import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { ProjectStorage } from '../lib/storage.ts';
import type { Db } from '../store/db.ts';
import { unlessTaken } from '../store/names.ts';
import { checkExtension, unpackExtension } from './archive.ts';
import { storeIdOf } from './crx.ts';
import type { Extension, ExtensionList, ExtensionSelector, FromChromeStore } from './schema.ts';
import { fetchCrx, zipIn } from './chrome-store.ts';
import { extensionStore, type ExtensionRow } from './store.ts';
import type { Upload, Uploads } from '../uploads/uploads.ts';

const mostOfASession = 20;
const storeMs = 30_000;

export type ExtensionService = ReturnType<typeof extensionService>;

/** An extension to load into a session: the name of its directory, and how to fill it. */
export interface Loadable {
  name: string;
  /** The id of a stored extension. */
  id?: string;
  unpack(to: string): Promise<void>;
}

export function extensionService(deps: { db: Db; uploads: Uploads; storage: ProjectStorage; storeUrl: string }) {
  const { db, uploads, storage, storeUrl } = deps;
  const store = extensionStore(db);

  async function find(projectId: string, idOrName: string): Promise<ExtensionRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.extension_not_found({ extension: idOrName });
    return row;
  }

  async function* bytesOf({ id, size_bytes }: Pick<ExtensionRow, 'id' | 'size_bytes'>): AsyncGenerator<Buffer> {
    let sent = 0;
    for (let position = 0; sent < size_bytes; position++) {
      const chunk = await store.chunk(id, position);
      if (!chunk) throw errors.extension_not_found({ extension: id }); // deleted since the first chunk
      sent += chunk.length;
      yield chunk;
    }
  }

  async function keep(projectId: string, name: string | null, zip: Upload): Promise<ExtensionRow> {
    const id = newId();
    return unlessTaken({ index: 'extensions_name', thing: 'extension', name }, () =>
      db.transaction(async (tx) => {
        const within = extensionStore(tx);
        const row = { id, project_id: projectId, name, size_bytes: zip.size, checksum: zip.sha256 };
        const kept = await within.insert(row);
        let position = 0;
        for await (const piece of zip.bytes()) await within.addChunk(id, position++, piece);
        return kept!;
      }),
    );
  }

  /** Copies a stored extension to a directory of the session. */
  const loadable = (row: ExtensionRow): Loadable => ({
    name: row.name ?? row.id,
    id: row.id,
    async unpack(to) {
      const zip = await uploads.take(bytesOf(row));
      try {
        await unpackExtension(zip.path, to);
        await store.touch(row.id);
      } finally {
        await zip.remove();
      }
    },
  });

  return {
    async create(projectId: string, name: string | undefined, zip: Upload): Promise<Extension> {
      await checkExtension(zip.path);
      return toExtension(await keep(projectId, name ?? null, zip));
    },

    takeIn: (projectId: string, content: AsyncIterable<Buffer>): Promise<Upload> =>
      uploads.take(content, storage.claim(projectId)),

    async list(projectId: string, filter: ExtensionList): Promise<Extension[]> {
      return (await store.list(projectId, filter)).map(toExtension);
    },

    async get(projectId: string, idOrName: string): Promise<Extension> {
      return toExtension(await find(projectId, idOrName));
    },

    async download(projectId: string, idOrName: string): Promise<{ size: number; bytes: AsyncIterable<Buffer> }> {
      const row = await find(projectId, idOrName);
      return { size: row.size_bytes, bytes: bytesOf(row) };
    },

    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      if (!(await store.remove(id))) throw errors.extension_not_found({ extension: idOrName });
    },

    /** The zip in the store's CRX. The download is removed when the caller has read it or stops reading. */
    async fromChromeStore(
      projectId: string,
      { url, os }: FromChromeStore,
      disconnected: AbortSignal,
    ): Promise<AsyncIterable<Buffer>> {
      const id = storeIdOf(url);
      if (!id)
        throw errors.invalid_input({
          detail: 'url is not the page of an extension; it takes https://chromewebstore.google.com/detail/<name>/<id>.',
        });
      const sent = fetchCrx(storeUrl, id, os, AbortSignal.any([disconnected, AbortSignal.timeout(storeMs)]));
      const crx = await uploads.take(sent, storage.claim(projectId));
      try {
        const from = await zipIn(crx);
        // Its `finally` does not run if the client disconnects before the first read.
        if (disconnected.aborted) await crx.remove();
        else disconnected.addEventListener('abort', () => void crx.remove().catch(() => {}), { once: true });
        return (async function* () {
          try {
            yield* crx.bytes(from);
          } finally {
            await crx.remove();
          }
        })();
      } catch (error) {
        await crx.remove();
        throw error;
      }
    },

    /** For sessions and pools: the extensions that a request selects, in its order. */
    async choose(projectId: string, selectors: ExtensionSelector[]): Promise<Loadable[]> {
      const chosen: Loadable[] = [];
      for (const [index, { id, name }] of selectors.entries()) {
        const row = await store.findBy(projectId, id ?? null, name ?? null);
        if (!row)
          throw errors.invalid_input({
            detail: `extensions.${index}: no extension has the ${id === undefined ? 'name' : 'id'} '${id ?? name}'. GET /extensions lists them.`,
          });
        if (chosen.some((other) => other.id === row.id))
          throw errors.invalid_input({ detail: `extensions.${index} names an extension that is named before.` });
        chosen.push(loadable(row));
      }
      return chosen;
    },

    /** For one session: extensions that are not stored. All of them are checked before any is loaded. */
    async adHoc(zips: { name: string; zip: Upload }[]): Promise<Loadable[]> {
      if (zips.length === 0 || zips.length > mostOfASession)
        throw errors.invalid_input({ detail: `extensions must have 1 to ${mostOfASession} items.` });
      for (const [index, { name, zip }] of zips.entries()) {
        if (zips.findIndex((other) => other.name === name) !== index)
          throw errors.invalid_input({ detail: `extensions.${index}.name is the name of one before.` });
        await checkExtension(zip.path);
      }
      return zips.map(({ name, zip }) => ({ name, unpack: (to) => unpackExtension(zip.path, to) }));
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.count(projectId);
      return count === 0 ? undefined : `${count} ${count === 1 ? 'extension' : 'extensions'}`;
    },
  };
}

function toExtension(row: ExtensionRow): Extension {
  return {
    id: row.id,
    name: row.name,
    created_at: row.created_at.toISOString(),
    size_bytes: row.size_bytes,
    checksum: row.checksum,
    last_used_at: row.last_used_at?.toISOString() ?? null,
  };
}
