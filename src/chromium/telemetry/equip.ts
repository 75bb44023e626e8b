import type { Capture } from '../../lib/telemetry.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { passedOn, type Method, type Params } from '../cdp/protocol.ts';
import { autoAttach, domainsFor, type Domain } from './domains.ts';
import type { interactionEvents } from './interaction.ts';
import type { Target } from './target.ts';

/** What Chromium keeps of responses for the collector, in the page's process. */
const bodyBuffers = {
  maxTotalBufferSize: 16 * 1024 * 1024,
  maxResourceBufferSize: 3 * 1024 * 1024,
  maxPostDataSize: 256 * 1024,
};

/** Sends a command to a target. Not awaited one by one: Chromium keeps their order, and a target may hang or go at any time. */
export function order<M extends Method>(
  client: LocalClient,
  { sessionId }: Target,
  method: M,
  params?: Params<M>,
): Promise<unknown> {
  return client.send(method, ...passedOn(params, sessionId)).catch(() => undefined);
}

/** Enables on each target what the categories need. */
export function equipment({
  client,
  interaction,
  learnFrames,
}: {
  client: LocalClient;
  interaction: ReturnType<typeof interactionEvents>;
  learnFrames: (target: Target) => Promise<void>;
}) {
  const enabled = new Map<Target, Set<Domain>>();

  return {
    gone: (target: Target) => void enabled.delete(target),

    /** Enables missing domains and disables domains that are no longer needed. Resolves when the target has confirmed it. */
    equip(target: Target, capture: Capture): Promise<unknown> {
      const wanted = domainsFor(capture, target.type);
      const had = enabled.get(target) ?? new Set<Domain>();
      enabled.set(target, wanted);
      const orders: Promise<unknown>[] = [];
      const give = <M extends Method>(method: M, params?: Params<M>) =>
        orders.push(order(client, target, method, params));
      const turn = (domain: Domain, on: () => void, off: () => void) => {
        if (wanted.has(domain) && !had.has(domain)) on();
        else if (!wanted.has(domain) && had.has(domain)) off();
      };

      turn(
        'page',
        () => {
          give('Page.enable');
          if (!target.fresh) orders.push(learnFrames(target).catch(() => undefined));
        },
        () => give('Page.disable'),
      );
      turn(
        'network',
        () => give('Network.enable', bodyBuffers),
        () => give('Network.disable'),
      );
      turn(
        'timeline',
        () => give('PerformanceTimeline.enable', { eventTypes: ['layout-shift', 'largest-contentful-paint'] }),
        () => give('PerformanceTimeline.enable', { eventTypes: [] }),
      );
      turn(
        'runtime',
        // Chromium repeats what the console said so far, before it answers.
        () =>
          orders.push(
            order(client, target, 'Runtime.enable').then(() => {
              target.consoleIsLive = enabled.get(target)?.has('runtime') ?? false;
            }),
          ),
        () => {
          target.consoleIsLive = false;
          target.contexts.clear();
          give('Runtime.disable');
        },
      );
      turn(
        'script',
        () => orders.push(interaction.start(target)),
        () => orders.push(interaction.stop(target)),
      );
      const attach = autoAttach(capture, 'inside');
      if (wanted.has('children')) give('Target.setAutoAttach', attach);
      else if (had.has('children')) give('Target.setAutoAttach', { ...attach, autoAttach: false });
      return Promise.all(orders);
    },
  };
}
