import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import { endings, type Ending } from './state.ts';
import type { Visit } from './telemetry.ts';

/** `cdp` and `viewer` are reported in the session's telemetry. */
export type ClientKind = 'cdp' | 'webdriver' | 'viewer' | 'terminal';

/** The websockets of one session. Each holds the session until it closes. */
export function sessionClients({
  id,
  ending,
  visited,
  log,
}: {
  id: string;
  ending: () => Ending | undefined;
  visited: (kind: 'cdp' | 'viewer') => Visit;
  log: Log;
}) {
  const sinks = new Set<WebSocketSink>();
  let holding = 0;
  const counts: Record<ClientKind, number> = { cdp: 0, webdriver: 0, viewer: 0, terminal: 0 };

  return {
    get count() {
      return sinks.size;
    },
    /** Those that hold the session. */
    get holding() {
      return holding;
    },
    get viewers() {
      return counts.viewer;
    },
    get byKind(): Readonly<Record<ClientKind, number>> {
      return { ...counts };
    },

    close(code: number, reason: string) {
      for (const sink of sinks) sink.close(code, reason);
    },

    /** Attaches a websocket. It holds the session until it closes, unless it comes from inside; when the session or the browser ends, it is closed with a code and a reason. */
    attach(held: { release(): void } | undefined, use: (sink: WebSocketSink) => WebSocketReceiver, kind: ClientKind) {
      return (bare: WebSocketSink): WebSocketReceiver => {
        const visit = kind === 'cdp' || kind === 'viewer' ? visited(kind) : undefined;
        const sink = visit ? reported(bare, visit) : bare;
        sinks.add(sink);
        counts[kind]++;
        if (held) holding++;
        const receiver = use(sink);
        const ended = ending();
        if (ended) sink.close(1001, endings[ended]);
        let left = false;
        /** A message that fails closes its own client and nothing else. */
        const guarded = (work: () => void) => {
          try {
            work();
          } catch (error) {
            log.error({ session: id, error: error instanceof Error ? error.stack : error }, 'session.client_failed');
            sink.close(1011, 'Something broke on our side.');
          }
        };
        return {
          receive(data, binary) {
            visit?.message();
            guarded(() => receiver.receive(data, binary));
          },
          flush: () => guarded(() => receiver.flush()),
          closed() {
            guarded(() => receiver.closed());
            visit?.over();
            if (left) return;
            left = true;
            sinks.delete(sink);
            counts[kind]--;
            if (!held) return;
            holding--;
            held.release();
          },
        };
      };
    },
  };
}

/** Counts messages, and reports the end when the service closes the connection: the client may take seconds to answer that. */
function reported(sink: WebSocketSink, visit: Visit): WebSocketSink {
  return {
    send(pieces) {
      visit.message();
      sink.send(pieces);
    },
    flush: () => sink.flush(),
    sendBinary(pieces, written) {
      visit.message();
      sink.sendBinary(pieces, written);
    },
    get bufferedAmount() {
      return sink.bufferedAmount;
    },
    close(code, reason) {
      visit.over(code);
      sink.close(code, reason);
    },
    pause: () => sink.pause(),
    resume: () => sink.resume(),
  };
}
