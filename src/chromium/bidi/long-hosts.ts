import { BrowsingContextImpl } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/BrowsingContextImpl.js';
import { NavigationTracker } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/NavigationTracker.js';
import { urlOf } from '../../lib/urls.ts';

const PLACE_OF_URL = 8;

/**
 * The mapper parses the addresses that frames go to, to see whether they are about:blank. Chromium takes a host of `xn--` and 600,000 letters,
 * and to parse it takes 16 s. From now on the mapper parses none with a long host.
 */
export function parseNoLongHosts(): void {
  const { createPendingNavigation } = NavigationTracker.prototype;
  const { create } = BrowsingContextImpl;

  NavigationTracker.prototype.createPendingNavigation = function createShort(url, canBeInitial = false) {
    return createPendingNavigation.call(this, url, canBeInitial && (url === '' || /^about:/i.test(url)));
  };

  // The constructor of a context parses the address of a document that is there already.
  BrowsingContextImpl.create = function createContext(...given) {
    const url = given[PLACE_OF_URL];
    if (!urlOf(url)) given[PLACE_OF_URL] = url.slice(0, 1000);
    return create.apply(this, given);
  };
}
