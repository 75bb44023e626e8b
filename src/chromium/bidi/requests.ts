import { NetworkRequest } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkRequest.js';
import { NetworkStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkStorage.js';
import { textIn } from './holdings.ts';

/** Of the texts of the events of all requests that one mapper keeps. */
const MOST_KEPT = 16 * 1024 * 1024;
/** What a request takes besides its texts. */
const EACH = 2000;

/** The events that the mapper keeps until a request has ended. Those of a failed one it keeps as long as its tab. */
const EVENTS = [
  'onRequestWillBeSentEvent',
  'onRequestWillBeSentExtraInfoEvent',
  'onResponseReceivedEvent',
  'onResponseReceivedExtraInfoEvent',
  'onRequestPaused',
  'onAuthRequired',
] as const;

/** The requests that a storage has, the oldest first, with their sizes. */
class Kept {
  readonly #storage: NetworkStorage;
  readonly #sizes = new Map<NetworkRequest, number>();
  #all = 0;

  constructor(storage: NetworkStorage) {
    this.#storage = storage;
  }

  set(request: NetworkRequest, size: number): void {
    this.#all += size - (this.#sizes.get(request) ?? 0);
    this.#sizes.set(request, size);
    for (const oldest of this.#sizes.keys()) {
      if (this.#all <= MOST_KEPT || oldest === request) return;
      this.#drop(oldest);
    }
  }

  grow(request: NetworkRequest, bytes: number): void {
    const size = this.#sizes.get(request);
    if (size !== undefined) this.set(request, size + bytes);
  }

  shrink(request: NetworkRequest): void {
    if (this.#sizes.has(request)) this.set(request, EACH);
  }

  /** Forgets those that the storage has no more. */
  tidy(requests: Iterable<NetworkRequest> = this.#sizes.keys()): void {
    for (const request of requests) {
      if (this.#storage.getRequestById(request.id) === request) continue;
      this.#all -= this.#sizes.get(request) ?? 0;
      this.#sizes.delete(request);
    }
  }

  #drop(request: NetworkRequest): void {
    const { id } = request;
    const storage = this.#storage;
    this.#all -= this.#sizes.get(request) ?? 0;
    this.#sizes.delete(request);
    if (storage.getRequestById(id) !== request) return;
    request.disposeData();
    for (const dataType of ['request', 'response'])
      try {
        storage.disownData({ request: id, dataType } as never); // of all collectors
      } catch {
        // Its data was not collected.
      }
    storage.disposeRequest(id);
  }
}

const kept = new WeakMap<NetworkStorage, Kept>();
const keptWith = new WeakMap<NetworkRequest, Kept>();

/** The mapper has no bound for requests that do not end, that failed, or whose data it has collected. From now on it drops the oldest of very many. */
export function boundRequests(): void {
  const { addRequest, disposeRequest, disposeRequestMap } = NetworkStorage.prototype;
  const { disposeData } = NetworkRequest.prototype;

  NetworkStorage.prototype.addRequest = function addBounded(request) {
    addRequest.call(this, request);
    const all = kept.get(this) ?? new Kept(this);
    kept.set(this, all);
    keptWith.set(request, all);
    all.set(request, EACH);
  };

  NetworkStorage.prototype.disposeRequest = function disposeCounted(id) {
    const request = this.getRequestById(id);
    disposeRequest.call(this, id);
    if (request) kept.get(this)?.tidy([request]);
  };

  NetworkStorage.prototype.disposeRequestMap = function disposeAllCounted(sessionId) {
    disposeRequestMap.call(this, sessionId);
    kept.get(this)?.tidy();
  };

  NetworkRequest.prototype.disposeData = function disposeCounted() {
    disposeData.call(this);
    keptWith.get(this)?.shrink(this);
  };

  for (const name of EVENTS) {
    const take = NetworkRequest.prototype[name] as (this: NetworkRequest, event: object) => void;
    NetworkRequest.prototype[name] = function takeCounted(this: NetworkRequest, event: object) {
      keptWith.get(this)?.grow(this, textIn(event));
      take.call(this, event);
    };
  }
}
