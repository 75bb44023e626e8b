import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../lib/log.ts';
import type { Db } from '../../store/db.ts';
import type { Secrets } from '../../store/secrets.ts';
import { SourceFailure } from '../providers/source.ts';
import type { turns } from '../providers/turns.ts';
import { mailboxOf, postedOf } from './contents.ts';
import { faultOf, isFinal, type SourceFault } from './faults.ts';
import { codeIn } from './find-code.ts';
import {
  MailboxFailure,
  type MailboxFault,
  type Mailboxes,
  type MailboxNote,
  type MailHead,
  type MailName,
} from './mailbox.ts';
import { fitsPattern } from './pattern.ts';
import { codeSourceStore, type MailboxRow, type MailboxSettings } from './store.ts';

/** A mail whose code a login got. */
export interface UsedMail extends MailName {
  sourceId: string;
}

export interface FoundCode {
  code: string;
  /** Undefined for a code that was posted. */
  mail?: UsedMail | undefined;
}

export interface CodeWatch {
  /** When the form was sent that the code answers, in milliseconds since 1970. Earlier codes are for something else. */
  since: number;
  /** Addresses of the account: mails to them come first. */
  addresses: readonly string[];
  found: (code: FoundCode) => Promise<void>;
  /** Undefined: the mailbox can be read again. */
  faulty: (sourceId: string, fault: SourceFault | undefined) => void;
  signal: AbortSignal;
}

interface LoginOf {
  projectId: string;
  credentialId: string;
}

interface Deps {
  db: Db;
  secrets: Secrets;
  mailboxes: Mailboxes;
  inTurn: ReturnType<typeof turns>;
  log: Log;
}

/** Clocks of mail servers and of this service differ a little, and the servers write whole seconds. */
const toleranceMs = 60_000;
/** The same for a posted code, whose time is the service's own. */
const postedToleranceSeconds = 5;
/** Posted codes are kept for so long. */
export const keptSeconds = 120;
const postedLookMs = 1000;
const againMs = 15_000;
const mostBadAnswers = 3;
const mostChosen = 5;

export type LoginCodes = ReturnType<typeof loginCodes>;

/** The sources of one login: they are noted when it begins, and read while its page asks for a code. */
export function loginCodes({ db, secrets, mailboxes, inTurn, log }: Deps, { projectId, credentialId }: LoginOf) {
  const store = codeSourceStore(db);
  const notes = new Map<string, { note: MailboxNote; at: number; place: string }>();
  const over = new AbortController();
  const facts = { credential: credentialId };

  const mailboxRows = async () => (await store.of(credentialId)).filter((row) => row.type === 'imap');

  async function opened({ id, settings }: MailboxRow): Promise<MailboxSettings & { password: string }> {
    const password = await secrets.get(mailboxOf, id);
    if (password === undefined) throw new MailboxFailure('refused');
    return { ...settings, password };
  }

  const turn = <T>({ id }: MailboxRow, work: () => Promise<T>) => inTurn({ provider: id, project: projectId }, work);

  async function noteAll(): Promise<void> {
    await Promise.all(
      (await mailboxRows()).map(async (row) => {
        const note = await turn(row, async () => mailboxes.note(await opened(row), over.signal));
        notes.set(row.id, { note, at: Date.now(), place: placeOf(row) });
      }),
    );
  }

  async function readMailbox(row: MailboxRow, watch: CodeWatch): Promise<void> {
    const { since, signal, faulty } = watch;
    const noted = notes.get(row.id);
    // A note that was taken after the form was sent may leave the mail out.
    const after = noted && noted.at <= since && noted.place === placeOf(row) ? noted.note : undefined;
    await turn(row, async () => {
      signal.throwIfAborted(); // the turn may come after the question
      await mailboxes.watch(await opened(row), {
        after,
        since: since - toleranceMs,
        choose: (heads) => chosen(row.settings, heads, watch.addresses),
        async read({ uid, text, html }, { subject, uidValidity }) {
          const code = codeIn({ subject, text, html });
          if (code === undefined || !(await store.useMail(mailHash(row, { uid, uidValidity })))) return false;
          await watch.found({ code, mail: { sourceId: row.id, uid, uidValidity } });
          return true;
        },
        looked: () => faulty(row.id, undefined),
        signal,
      });
    });
  }

  async function watchMailbox(row: MailboxRow, watch: CodeWatch): Promise<void> {
    const { signal, faulty } = watch;
    for (let bad = 0; !signal.aborted;) {
      try {
        await readMailbox(row, watch);
      } catch (error) {
        if (signal.aborted) return;
        const fault = faultIn(error);
        // The database may answer again.
        if (fault === undefined) log.error({ ...facts, source: row.id, error }, 'one_time_code.not_read');
        else {
          log.warn({ ...facts, source: row.id, fault }, 'one_time_code.mailbox_failed');
          faulty(row.id, faultOf(row.settings, fault));
          if (fault === 'bad_answer') bad++;
          if (isFinal(fault) || bad >= mostBadAnswers) return;
        }
        await sleep(againMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  async function watchPosted(sourceIds: string[], { since, signal, found }: CodeWatch): Promise<void> {
    while (!signal.aborted) {
      const seconds = Math.min((Date.now() - since) / 1000 + postedToleranceSeconds, keptSeconds);
      const code = await takePosted(sourceIds, seconds).catch((error: Error) => {
        log.warn({ ...facts, error: error.message }, 'one_time_code.not_read');
      });
      if (code !== undefined && !signal.aborted) await found({ code });
      await sleep(postedLookMs, undefined, { signal }).catch(() => {});
    }
  }

  const takePosted = (sourceIds: string[], seconds: number): Promise<string | undefined> =>
    db.transaction(async (tx) => {
      const id = await codeSourceStore(tx).takeCode(sourceIds, seconds);
      if (id === undefined) return undefined;
      const code = await secrets.get(postedOf, id, tx);
      await secrets.remove(postedOf, id, tx);
      return code;
    });

  return {
    /** Notes which mails are there before the login sends anything. It does not wait: without a note, the time decides. */
    begin(): void {
      noteAll().catch((error: Error) => {
        const known = error instanceof MailboxFailure || error instanceof SourceFailure || over.signal.aborted;
        if (!known) log.warn({ ...facts, error: error.message }, 'one_time_code.not_noted');
      });
    },

    /** Hands over each new code, until the signal fires. */
    async watch(watch: CodeWatch): Promise<void> {
      const signal = AbortSignal.any([watch.signal, over.signal]);
      const bounded = { ...watch, signal };
      const rows = await store.of(credentialId);
      const posted = rows.filter(({ type }) => type === 'webhook').map(({ id }) => id);
      await Promise.all([
        ...rows.filter((row) => row.type === 'imap').map((row) => watchMailbox(row, bounded)),
        ...(posted.length > 0 ? [watchPosted(posted, bounded)] : []),
      ]);
    },

    /** Deletes those mails whose source says so. The site has accepted their codes. */
    async accepted(mails: readonly UsedMail[]): Promise<void> {
      const rows = await mailboxRows();
      for (const mail of mails) {
        const row = rows.find(({ id }) => id === mail.sourceId);
        if (!row?.settings.delete_after_use) continue;
        await turn(row, async () => mailboxes.remove(await opened(row), mail)).catch((error: Error) =>
          log.warn({ ...facts, source: row.id, fault: faultIn(error) }, 'one_time_code.mail_not_deleted'),
        );
      }
    },

    close: () => over.abort(new Error('The login is over.')),
  };
}

/** The mails that fit the patterns: those to an address of the account first, and of each the newest. */
function chosen({ from, to, subject }: MailboxSettings, heads: readonly MailHead[], addresses: readonly string[]) {
  const fits = (pattern: string | undefined, texts: readonly string[]) =>
    pattern === undefined || texts.some((text) => fitsPattern(text, pattern));
  const isOwn = ({ to: people }: MailHead) => addresses.some((address) => fits(address.replaceAll('*', ''), people));
  return heads
    .filter((head) => fits(from, head.from) && fits(to, head.to) && fits(subject, [head.subject]))
    .map((head) => ({ uid: head.uid, own: isOwn(head) ? 1 : 0 }))
    .sort((one, two) => two.own - one.own || two.uid - one.uid)
    .slice(0, mostChosen)
    .map(({ uid }) => uid);
}

const placeOf = ({ settings: { host, port, username, mailbox } }: MailboxRow) =>
  JSON.stringify([host.toLowerCase(), port, username, mailbox]);

/** Names a mail in the installation: sources of other credentials and projects may have the same mailbox. */
function mailHash({ settings: { host, username, mailbox } }: MailboxRow, { uid, uidValidity }: MailName): Buffer {
  const name = JSON.stringify([host.toLowerCase(), username.toLowerCase(), mailbox, uidValidity, uid]);
  return createHash('sha256').update(name).digest();
}

function faultIn(error: unknown): MailboxFault | undefined {
  if (error instanceof MailboxFailure) return error.fault;
  return error instanceof SourceFailure ? 'busy' : undefined;
}
