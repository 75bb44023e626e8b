import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { anyText, object, record, table, text } from '../../lib/shape.ts';
import { looksLikeDomain } from '../domains.ts';
import { contentsOfTable } from './fields.ts';
import {
  asking,
  itemCollection,
  pathPart,
  SourceFailure,
  type Source,
  type SourceItem,
  type SourceSettings,
} from './source.ts';

/** A list of more secrets takes too many requests: one for each folder, and one for each secret. */
const mostSecrets = 1000;
const mostFolders = 500;
const deepest = 10;
const atOnce = 8;
/** Of the metadata of a secret, so many characters of each value name sites. Vault itself takes 512. */
const mostCharacters = 16 * 1024;

interface Place {
  mount: string;
  /** Below the mount. */
  path: string;
}

const Mounts = object({ data: object({ secret: table(object({ type: text(255) })) }) });
const Key = text(4096);
const Metadata = object({ data: record });
const Secret = object({ data: object({ data: record }) });
const Anything = record;

/**
 * The KV engine, version 2, of HashiCorp Vault and OpenBao. A mount is a vault of the API, a secret an item. The sites of a
 * secret are in its custom metadata (`urls`, `url`, `domain`), or a part of its path is the site's name.
 */
export function vaultSource(settings: SourceSettings, request: RequestDirectly): Source {
  const { token, namespace } = settings;
  const serverUrl = settings.serverUrl.replace(/\/v1\/?$/, '');
  const headers = {
    'X-Vault-Token': token,
    'X-Vault-Request': 'true',
    ...(namespace ? { 'X-Vault-Namespace': namespace } : {}),
  };
  const ask = asking({ ...settings, serverUrl }, headers, request);

  let known = settings.mounts;

  /** The mounts to look at, without the slash at their ends. */
  async function mounts(): Promise<string[]> {
    if (known) return known;
    const { data } = await ask('/v1/sys/internal/ui/mounts', Mounts);
    known = Object.entries(data.secret)
      .filter(([, mount]) => mount.type === 'kv' && version(mount) === '2')
      .map(([path]) => path.replace(/\/$/, ''));
    return known;
  }

  /** The keys in a folder, as far as there is use for them: a store may have any number. */
  async function keysBelow(mount: string, folder: string): Promise<string[]> {
    const path = `/v1/${encoded(mount)}/metadata/${encoded(folder)}`;
    const keys: string[] = [];
    let [folders, secrets] = [0, 0];
    try {
      for await (const key of ask.list(path, ['data', 'keys'], Key, { list: 'true' }))
        if (key.endsWith('/') ? folders++ < mostFolders : secrets++ < mostSecrets) keys.push(key);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return keys;
  }

  /** The paths of all secrets of a mount, folder by folder. */
  async function walk(mount: string, found: Place[]) {
    let folders = [''];
    let visited = 0;
    for (let depth = 0; folders.length > 0 && depth < deepest; depth++) {
      const next: string[] = [];
      const listed = await several(folders, async (folder) => ({ folder, keys: await keysBelow(mount, folder) }));
      for (const { folder, keys } of listed)
        for (const key of keys) {
          if (key.endsWith('/')) next.push(`${folder}${key}`);
          else if (found.length < mostSecrets) found.push({ mount, path: `${folder}${key}` });
        }
      visited += folders.length;
      folders = next.slice(0, Math.max(0, mostFolders - visited));
    }
  }

  const metadataOf = ({ mount, path }: Place) =>
    orUndefined(ask(`/v1/${encoded(mount)}/metadata/${encoded(path)}`, Metadata));

  function item({ mount, path }: Place, metadata: Awaited<ReturnType<typeof metadataOf>>): SourceItem {
    const urls = sitesOf(metadata?.data['custom_metadata'], path);
    const title = path.slice(path.lastIndexOf('/') + 1);
    const whole = `${mount}/${path}`;
    return { id: whole, title, vault_id: mount, vault_name: mount, path: whole, ...(urls.length > 0 ? { urls } : {}) };
  }

  async function placeOf(path: string): Promise<Place | undefined> {
    const whole = path.replace(/^\/+/, '');
    // Mounts may have slashes in their names, so the longest mount that the path begins with is used.
    const mount = (await mounts())
      .filter((name) => whole.startsWith(`${name}/`))
      .sort((a, b) => b.length - a.length)[0];
    if (mount === undefined || whole.length === mount.length + 1) return undefined;
    return { mount, path: whole.slice(mount.length + 1) };
  }

  return {
    async vaults() {
      // With a list of mounts nothing is asked for, and a test has to find out whether the token is good.
      if (settings.mounts) await ask('/v1/auth/token/lookup-self', Anything);
      return (await mounts()).map((name) => ({ id: name, name }));
    },

    async items() {
      const found: Place[] = [];
      for (const mount of await mounts()) await walk(mount, found);
      const { items, add } = itemCollection();
      for (const one of await several(found, async (place) => item(place, await metadataOf(place)))) add(one);
      return items;
    },

    async itemAt(path) {
      const place = await placeOf(path);
      const metadata = place && (await metadataOf(place));
      return metadata && item(place, metadata);
    },

    async read({ vault_id: mount, path: whole }) {
      const path = whole.slice(mount.length + 1);
      const secret = await orUndefined(ask(`/v1/${encoded(mount)}/data/${encoded(path)}`, Secret));
      if (!secret) throw new SourceFailure('not_found', `There is no secret at ${whole}, or it was deleted.`);
      return contentsOfTable(secret.data.data);
    },
  };
}

function version(mount: object): unknown {
  const { options } = mount as { options?: unknown };
  return record(options) ? options['version'] : undefined;
}

function sitesOf(metadata: unknown, path: string): string[] {
  if (record(metadata)) {
    const named = ['urls', 'url', 'domains', 'domain', 'website']
      .map((key) => metadata[key])
      .filter((value) => anyText(value))
      .flatMap((value) => value.slice(0, mostCharacters).split(/[\s,]+/))
      .filter((value) => value !== '');
    if (named.length > 0) return named.slice(0, 100);
  }
  return path.split('/').filter((part) => looksLikeDomain(part));
}

const encoded = (path: string) => path.split('/').map(pathPart).join('/');

const orUndefined = <T>(asked: Promise<T>): Promise<T | undefined> =>
  asked.catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });

const isNotFound = (error: unknown) => error instanceof SourceFailure && error.code === 'not_found';

/** Some at a time: a store that serves others too is not flooded. */
async function several<T, R>(inputs: readonly T[], work: (input: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let i = 0; i < inputs.length; i += atOnce)
    results.push(...(await Promise.all(inputs.slice(i, i + atOnce).map((input) => work(input)))));
  return results;
}
