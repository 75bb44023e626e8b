import { unrollEvents } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/session/SubscriptionManager.js';
import { record } from '../../lib/shape.ts';

/**
 * What a client leaves in the mapper until it removes it. Each of them makes events of the browser more work, or takes memory of the
 * service, so there is a bound for each kind.
 */
interface Kind {
  what: string;
  /** The name of its id in the answer, and in the command that removes it. */
  id: string;
  most: number;
  remove: string;
  /** The list of its parts, and the most of all of its kind. The mapper goes through the parts of all at an event. */
  parts?: { name: string; most: number };
}

const kinds: Readonly<Record<string, Kind>> = {
  'session.subscribe': {
    what: 'subscriptions',
    id: 'subscription',
    most: 100,
    remove: 'session.unsubscribe',
    parts: { name: 'events', most: 1000 },
  },
  'network.addIntercept': {
    what: 'intercepts',
    id: 'intercept',
    most: 100,
    remove: 'network.removeIntercept',
    parts: { name: 'urlPatterns', most: 100 },
  },
  'network.addDataCollector': {
    what: 'data collectors',
    id: 'collector',
    most: 100,
    remove: 'network.removeDataCollector',
  },
  'script.addPreloadScript': {
    what: 'preload scripts',
    id: 'script',
    most: 200,
    remove: 'script.removePreloadScript',
  },
  'browser.createUserContext': {
    what: 'user contexts',
    id: 'userContext',
    most: 1000,
    remove: 'browser.removeUserContext',
  },
};
const removals = new Map(Object.values(kinds).map((kind) => [kind.remove, kind]));

const NO_PARTS = { name: '', most: 0 };
/** Chromium has some hundred events, and clients use few channels. */
const MOST_NAMES = 10_000;
/** Of the texts of all kinds: a client may add some large scripts. */
const MOST_TEXT = 16 * 1024 * 1024;

export interface ClientCommand {
  id: number;
  method: string;
  params: Record<string, unknown>;
  'goog:channel'?: string;
}

interface Holding {
  kind: Kind;
  text: number;
  parts: Set<string> | number;
  /** The client that may unsubscribe from these events by name. */
  channel: string | undefined;
  everywhere: boolean;
}

export class Holdings {
  /** By their ids, which are of all kinds. */
  readonly #held = new Map<string, Holding>();
  /** What the mapper has not answered. */
  readonly #added = new Map<number, Holding>();
  readonly #removed = new Map<number, ClientCommand>();
  /** All names of events and all channels that were ever in a subscription: the mapper keeps some of each after it. */
  readonly #names = new Set<string>();

  /** Takes note of a command. Answers with the reason if it is beyond a bound. */
  refusal(command: ClientCommand): string | undefined {
    const { id, method } = command;
    const kind = Object.hasOwn(kinds, method) ? kinds[method] : undefined;
    if (!kind && !removals.has(method)) return undefined;
    if (this.#added.has(id) || this.#removed.has(id)) return `A command with the id ${id} is unanswered.`;
    if (!kind) return void this.#removed.set(id, command);
    const holding = holdingOf(kind, command);
    const all = [...this.#held.values(), ...this.#added.values()];
    const same = all.filter((other) => other.kind === kind);
    const of = `of this connection, which is the most. Remove some with ${kind.remove} first.`;
    if (same.length >= kind.most) return `There are ${kind.most} ${kind.what} ${of}`;
    const { name, most } = kind.parts ?? NO_PARTS;
    if ([...same, holding].reduce((sum, { parts }) => sum + count(parts), 0) > most)
      return `There are more than ${most} ${name} in the ${kind.what} ${of}`;
    if ([...all, holding].reduce((sum, { text }) => sum + text, 0) > MOST_TEXT)
      return `There are more than ${MOST_TEXT} characters in the ${kind.what} and others ${of}`;
    if (typeof holding.parts !== 'number') {
      for (const part of [...holding.parts, `channel ${holding.channel}`]) this.#names.add(part);
      if (this.#names.size > MOST_NAMES)
        return `There were more than ${MOST_NAMES} names of events and channels in the subscriptions of this connection. Open another one.`;
    }
    this.#added.set(id, holding);
  }

  /** Takes note of the answer to a command. */
  answered(id: number, result: Record<string, unknown> | undefined): void {
    const added = this.#added.get(id);
    const removed = this.#removed.get(id);
    this.#added.delete(id);
    this.#removed.delete(id);
    if (!result) return;
    const made = added && result[added.kind.id];
    if (added && typeof made === 'string') this.#held.set(made, added);
    if (removed) this.#remove(removed);
  }

  #remove({ method, params, 'goog:channel': channel }: ClientCommand): void {
    const { subscriptions, events } = params;
    if (Array.isArray(subscriptions)) for (const id of subscriptions) this.#held.delete(String(id));
    else if (Array.isArray(events)) this.#unsubscribe(new Set(unrollEvents(events)), channel);
    else this.#held.delete(String(params[removals.get(method)!.id]));
  }

  /** Like the mapper: from the subscriptions of the channel in all contexts. */
  #unsubscribe(events: Set<string>, channel: string | undefined): void {
    for (const [id, { parts, channel: other, everywhere }] of this.#held) {
      if (typeof parts === 'number' || other !== channel || !everywhere) continue;
      for (const event of events) parts.delete(event);
      if (parts.size === 0) this.#held.delete(id);
    }
  }
}

function holdingOf(kind: Kind, { method, params, 'goog:channel': channel }: ClientCommand): Holding {
  const { name, most } = kind.parts ?? NO_PARTS;
  const list = kind.parts && params[name];
  const parts = Array.isArray(list) ? list : [];
  const isLong = method !== 'session.subscribe' || parts.length > most;
  return {
    kind,
    text: textIn(params),
    parts: isLong ? parts.length : new Set(unrollEvents(parts)),
    channel,
    everywhere: isEmpty(params['contexts']) && isEmpty(params['userContexts']),
  };
}

function isEmpty(list: unknown): boolean {
  return list === undefined || (Array.isArray(list) && list.length === 0);
}

function count(parts: Holding['parts']): number {
  return typeof parts === 'number' ? parts : parts.size;
}

/** How many characters a value has. No recursion: the client determines the depth. */
export function textIn(value: unknown): number {
  let length = 0;
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') length += next.length;
    else if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (record(next)) for (const name in next) left.push(name, next[name]);
  }
  return length;
}
