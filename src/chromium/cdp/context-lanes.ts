import { record } from '../../lib/shape.ts';
import type { Command } from './command.ts';

/** The way out of one browser context, by the proxy that its client named. */
interface ContextLane {
  /** The parameters for Chromium instead. */
  readonly proxyServer: string;
  close(): void;
}

/** Opens a lane; undefined if the context uses the session's way out. Throws an error with a message for the client. */
export type OpenLane = (proxyServer: string, proxyBypassList: string | undefined) => ContextLane | undefined;

export const CREATE_CONTEXT = 'Target.createBrowserContext' as const;
export const DISPOSE_CONTEXT = 'Target.disposeBrowserContext';

/** No real client sends a command with that many parameters. */
const MOST_BYTES = 256 * 1024;

/** A lane with what decides about its end. */
export interface TakenLane {
  lane: ContextLane;
  owner: object;
  /** Chromium disposes of the context when its client leaves. */
  leaves: boolean;
}

/**
 * Contexts with a proxy of their own. Chromium reaches nothing but the gateway, so a context gets a lane of the gateway as its proxy, and the
 * gateway reaches the proxy that was named. Which hosts bypass it is decided there too: without a proxy Chromium would reach nothing.
 */
export class ContextLanes {
  readonly #openLane: OpenLane | undefined;
  readonly #contexts = new Map<string, TakenLane>();

  constructor(openLane: OpenLane | undefined) {
    this.#openLane = openLane;
  }

  /** The parameters to create a context with. Throws an error with a message for the client. */
  prepare(given: Command['params'], owner: object): { params: Command['params']; taken: TakenLane | undefined } {
    if (given === undefined) return { params: given, taken: undefined };
    const params = Buffer.isBuffer(given) ? parsed(given) : { ...given };
    const { proxyServer, proxyBypassList, disposeOnDetach, ...rest } = params as Record<string, unknown>;
    const known = { ...rest, ...(disposeOnDetach === undefined ? {} : { disposeOnDetach }) };
    // Chromium reports parameters of the wrong type.
    if (typeof proxyServer !== 'string' || (proxyBypassList !== undefined && typeof proxyBypassList !== 'string'))
      return { params: given, taken: undefined };
    if (proxyServer === '') return { params: known, taken: undefined };
    if (!this.#openLane)
      throw new Error(
        'proxyServer needs a sandbox, which this machine does not have. Give the session a proxy_id instead.',
      );
    const lane = this.#openLane(proxyServer, proxyBypassList);
    if (!lane) return { params: known, taken: undefined };
    return {
      params: { ...known, proxyServer: lane.proxyServer, proxyBypassList: '<-loopback>' },
      taken: { lane, owner, leaves: disposeOnDetach === true },
    };
  }

  /** The context was created; without an id it was not. */
  created(taken: TakenLane, contextId: string | undefined): void {
    if (contextId === undefined) taken.lane.close();
    else this.#contexts.set(contextId, taken);
  }

  /** A client disposes of a context, whichever client created it. */
  disposed(params: Command['params']): void {
    if (this.#contexts.size === 0 || params === undefined) return;
    // No real client sends an id of this length. If one does, its lane ends with the session.
    if (Buffer.isBuffer(params)) return;
    const { browserContextId } = params as { browserContextId?: unknown };
    if (typeof browserContextId === 'string') this.#end(browserContextId);
  }

  #end(contextId: string): void {
    this.#contexts.get(contextId)?.lane.close();
    this.#contexts.delete(contextId);
  }

  /** A client has left, and with it the contexts that are disposed of with their client. */
  left(owner: object): void {
    for (const [id, taken] of this.#contexts) if (taken.owner === owner && taken.leaves) this.#end(id);
  }
}

/** Throws an error with a message for the client. */
function parsed(bytes: Buffer): object {
  if (bytes.length > MOST_BYTES) throw new Error(`Its parameters have more than ${MOST_BYTES} bytes.`);
  const value: unknown = JSON.parse(bytes.toString());
  return record(value) ? value : {};
}
