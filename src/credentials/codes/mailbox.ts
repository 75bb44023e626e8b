/* oxlint-disable unicorn/require-post-message-target-origin -- messages between threads have no origin */
import { Worker } from 'node:worker_threads';
import type { Destinations } from '../../chromium/egress/destinations.ts';
import { EgressError } from '../../chromium/egress/refusals.ts';
import type { MailboxSettings } from './store.ts';

/** Why a mailbox cannot be read. The codes are part of the interface, with `mailbox_` before them. */
export type MailboxFault =
  'refused' | 'unreachable' | 'tls_failed' | 'timeout' | 'missing' | 'bad_answer' | 'address_refused' | 'busy';

/** A mailbox that cannot be read. Nothing of the server's own words is in it. */
export class MailboxFailure extends Error {
  override readonly name = 'MailboxFailure';
  readonly fault: MailboxFault;
  constructor(fault: MailboxFault, cause?: unknown) {
    super(fault, cause === undefined ? undefined : { cause });
    this.fault = fault;
  }
}

/** Where a mailbox was: mails with this UID, and later ones, are new. */
export interface MailboxNote {
  uidNext: number;
  uidValidity: string;
}

export interface MailName {
  uid: number;
  uidValidity: string;
}

/** What a mail is chosen by. */
export interface MailHead extends MailName {
  from: string[];
  to: string[];
  subject: string;
}

interface Mail {
  uid: number;
  text: string;
  html: string;
}

export interface Watching {
  /** Undefined: the moment alone decides which mails are new. */
  after: MailboxNote | undefined;
  /** Milliseconds since 1970. */
  since: number;
  /** The UIDs of the mails that are wanted, the first one first. */
  choose: (heads: MailHead[]) => number[];
  /** True: no other of the chosen mails is wanted now. */
  read: (mail: Mail, head: MailHead) => Promise<boolean>;
  /** The mailbox was read without a fault. */
  looked: () => void;
  signal: AbortSignal;
}

type Open = MailboxSettings & { password: string };
type Task =
  | { task: 'note' }
  | { task: 'watch'; after: MailboxNote | undefined; since: number }
  | { task: 'delete'; mail: MailName };
type Message = { heads: MailHead[] } | { mail: Mail } | { looked: true } | { done: unknown } | { fault: string };

/** A task other than a watch. */
const taskMs = 30_000;

export type Mailboxes = ReturnType<typeof imapMailboxes>;

/** Mailboxes of users, by IMAP over TLS. Each task has a connection and a thread of its own, and nothing of it is left when it returns. */
export function imapMailboxes({ check }: Pick<Destinations, 'check'>) {
  async function perform(
    { host, port, security, username, password, mailbox, ca_bundle: ca }: Open,
    task: Task,
    signal: AbortSignal,
    take: (message: Message) => Promise<object | undefined>,
  ): Promise<unknown> {
    const { addresses } = await check(host, port).catch((error: unknown) => {
      if (!(error instanceof EgressError)) throw error;
      throw new MailboxFailure(error.code === 'destination_refused' ? 'address_refused' : 'unreachable', error);
    });
    signal.throwIfAborted();
    const worker = new Worker(new URL('mailbox-worker.mjs', import.meta.url), {
      workerData: { ...task, addresses: addresses.slice(0, 4), host, port, security, username, password, mailbox, ca },
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 },
    });
    // What it prints may have parts of mails.
    worker.stdout.resume();
    worker.stderr.resume();
    let stop = () => {};
    try {
      return await new Promise((resolve, reject) => {
        stop = () => reject(signal.reason as Error);
        signal.addEventListener('abort', stop, { once: true });
        worker.on('error', (error) => reject(new MailboxFailure('bad_answer', error)));
        worker.on('exit', () => reject(new MailboxFailure('bad_answer')));
        worker.on('message', (message: Message) => {
          if ('done' in message) resolve(message.done);
          else if ('fault' in message) reject(new MailboxFailure(faultOf(message.fault)));
          else take(message).then((answer) => answer && worker.postMessage(answer), reject);
        });
      });
    } finally {
      signal.removeEventListener('abort', stop);
      await worker.terminate();
    }
  }

  /** One task with a limit of its own. */
  async function soon(settings: Open, task: Task, signal?: AbortSignal): Promise<unknown> {
    const late = AbortSignal.timeout(taskMs);
    try {
      return await perform(settings, task, signal ? AbortSignal.any([signal, late]) : late, async () => undefined);
    } catch (error) {
      throw late.aborted && !signal?.aborted ? new MailboxFailure('timeout', error) : error;
    }
  }

  return {
    note: async (settings: Open, signal: AbortSignal) =>
      (await soon(settings, { task: 'note' }, signal)) as MailboxNote,

    /** Reads new mails until the signal fires. It rejects then too. */
    async watch(settings: Open, { after, since, choose, read, looked, signal }: Watching): Promise<void> {
      let heads: MailHead[] = [];
      await perform(settings, { task: 'watch', after, since }, signal, async (message) => {
        if ('heads' in message) {
          heads = message.heads;
          return { wanted: choose(heads) };
        }
        if ('mail' in message) {
          const head = heads.find(({ uid }) => uid === message.mail.uid);
          return { enough: head !== undefined && (await read(message.mail, head)) };
        }
        looked();
        return undefined;
      });
    },

    /** Deletes one mail. Nothing is deleted if the mailbox has been recreated since. */
    async remove(settings: Open, mail: MailName): Promise<void> {
      await soon(settings, { task: 'delete', mail });
    },
  };
}

const faults = new Set<string>(['refused', 'unreachable', 'timeout', 'missing', 'bad_answer'] satisfies MailboxFault[]);
const faultOf = (fault: string): MailboxFault =>
  fault === 'tls' ? 'tls_failed' : faults.has(fault) ? (fault as MailboxFault) : 'unreachable';
