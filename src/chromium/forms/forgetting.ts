import type { AttachedPage, PageCommands } from './attached-pages.ts';
import { isCookies } from './fingerprint.ts';

/** More hosts than a login visits, and more cookies than they set. */
const MOST_ORIGINS = 20;
const MOST_COOKIES = 500;
const storageTypes = 'file_systems,indexeddb,local_storage,service_workers,cache_storage';

/** Removes what the browser remembers of sites. */
export function forgetting(commands: PageCommands) {
  const { main, step } = commands.patience;

  return async function forget(
    { sessionId }: AttachedPage,
    origins: readonly string[],
    isTheirs: (url: string) => boolean,
  ): Promise<void> {
    const { cookies } = await commands.ask(main, sessionId, isCookies, 'Network.getAllCookies', {});
    const theirs = cookies.filter(({ domain }) => isTheirs(`https://${domain.replace(/^\./, '')}/`));
    for (const { name, domain, path } of theirs.slice(0, MOST_COOKIES))
      await commands.send(step, sessionId, 'Network.deleteCookies', { name, domain, path });
    for (const origin of origins.slice(0, MOST_ORIGINS))
      await commands.send(step, sessionId, 'Storage.clearDataForOrigin', { origin, storageTypes });
  };
}
