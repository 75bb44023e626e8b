import { NetworkRequest } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkRequest.js';
import { NetworkStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkStorage.js';
import { urlOf } from '../../lib/urls.ts';

type Interception = Parameters<NetworkStorage['addIntercept']>[0];
type Pattern = Interception['urlPatterns'][number];

const { addIntercept, removeIntercept } = NetworkStorage.prototype;
const all = new WeakMap<NetworkStorage, Map<string, Interception>>();

/**
 * The mapper parses the address of a request, of up to 2 MB, for each pattern of each intercept: 90 patterns took 1.4 s for each event. From
 * now on it is parsed once.
 */
export function parseAddressesOnce(): void {
  NetworkStorage.prototype.addIntercept = function addNoted(interception) {
    const id = addIntercept.call(this, interception);
    const those = all.get(this) ?? new Map<string, Interception>();
    all.set(this, those.set(id, interception));
    return id;
  };

  NetworkStorage.prototype.removeIntercept = function removeNoted(id) {
    removeIntercept.call(this, id);
    all.get(this)?.delete(id);
  };

  /** The intercepts that block a request, as the mapper finds them. */
  NetworkStorage.prototype.getInterceptsForPhase = function interceptsOf({ url, cdpTarget: { topLevelId } }, phase) {
    const those = all.get(this);
    if (!those?.size || url === NetworkRequest.unknownParameter) return new Set();
    let parsed: Partial<URL> | undefined;
    const fits = (pattern: Pattern) => matches(pattern, (parsed ??= urlOf(url) ?? {}));
    const found = [...those].filter(
      ([, { phases, contexts, urlPatterns }]) =>
        phases.includes(phase) &&
        (!contexts || contexts.includes(topLevelId)) &&
        (urlPatterns.length === 0 || urlPatterns.some(fits)),
    );
    return new Set(found.map(([id]) => id));
  };
}

/** An undefined part of a pattern fits every address, and no other part fits an address that is none. */
function matches({ protocol, hostname, port, pathname, search }: Pattern, url: Partial<URL>): boolean {
  return (
    fitsPart(protocol, url.protocol?.slice(0, -1)) &&
    fitsPart(hostname, url.hostname) &&
    fitsPart(port, url.port) &&
    fitsPart(pathname, url.pathname) &&
    fitsPart(search, url.search)
  );
}

const fitsPart = (wanted: string | undefined, part: string | undefined) => wanted === undefined || wanted === part;
