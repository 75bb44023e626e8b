import type { Client } from './client.ts';
import type { TakenLane } from './context-lanes.ts';
import type { Message } from './pipe.ts';

/** What the multiplexer knows of its clients: their connections, CDP sessions and unanswered commands. */

/** A CDP session, from the moment Chromium announced it until it is detached. */
export interface Session {
  id: string;
  owner: Connection;
  children: Set<Session>;
  parent: Session | undefined;
  /** When it was detached. Commands sent to it before may never be answered. */
  detachedAt: number;
  /** Undefined for the session of the browser. */
  targetId: string | undefined;
  /** The client has enabled Page, so it answers the page's dialogs. */
  answersDialogs: boolean;
  /** The client takes the page's requests for files. */
  choosesFiles: boolean;
  /** The execution contexts that are hidden from its client. */
  hiddenContexts: Set<number> | undefined;
}

/** A client's command that Chromium has not answered. */
export interface Pending {
  owner: Connection;
  session: Session;
  /** The client's own command id. */
  id: number;
  /** Set if the answer has to be inspected. */
  method?: 'Target.getTargets' | 'Target.createTarget' | 'Target.createBrowserContext' | 'Page.navigate';
  /** The lane of a context that is being created. */
  taken?: TakenLane | undefined;
  /** The URL of a navigation. */
  url?: string | undefined;
}

/** Messages that wait, and their bytes. */
export interface Held {
  readonly messages: Message[];
  bytes: number;
}

/** A client's connection, as far as routing needs it. */
export interface Connection extends Client {
  /** Whether it takes an event that begins like this. */
  wants(head: Buffer): boolean;
  deliver(pieces: readonly Buffer[], bytes: number): void;
  readonly sessions: Set<Session>;
  /** The ids of its unanswered commands, as the pipe has them. */
  readonly unanswered: Set<number>;
  readonly root: Session | undefined;
  end(code: number, reason: string): void;
  pause(): void;
  resume(): void;
  /** Messages were sent since its sink was last flushed. */
  unflushed: boolean;
  flushSink(): void;
  /** The targets it creates are hidden from the other clients. */
  readonly secretive: boolean;
  /** It observes the browser for the service, and must not change what the other clients see. */
  readonly watching: boolean;
  /** Messages that arrived while a hidden target was created: kept until the id of that target is known. */
  held: Held | undefined;
}

export function newSession(id: string, owner: Connection, parent?: Session, targetId?: string): Session {
  return {
    id,
    owner,
    parent,
    targetId,
    children: new Set(),
    detachedAt: 0,
    answersDialogs: false,
    choosesFiles: false,
    hiddenContexts: undefined,
  };
}
