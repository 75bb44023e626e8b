import type { EventCategory } from '../../lib/telemetry.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Draft, Target, Emit } from './target.ts';

/** What the parts of the collector share while they watch one browser. */
export interface Watch {
  readonly client: LocalClient;
  readonly targets: { get(sessionId: string | undefined): Target | undefined; all(): Iterable<Target> };
  readonly emit: Emit;
  readonly draft: Draft;
  /** The isolated world for the collector's scripts. */
  readonly world: string;
  captures(category: EventCategory): boolean;
}
