import type { SourceFault } from '../credentials/codes/faults.ts';
import type { CodeSourceService } from '../credentials/codes/service.ts';
import type { FoundCode, UsedMail } from '../credentials/codes/watch.ts';
import type { OpenCredential } from '../credentials/service.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Explained, FlowOutcome, InputWanted, Submitted } from './flow/types.ts';
import type { LoginInputs } from './inputs.ts';
import type { RunRow } from './run-store.ts';
import { linkOf, type ConnectionRow } from './store.ts';

interface Watched {
  connection: ConnectionRow;
  run: RunRow;
  /** What was opened last for the login. */
  credential: () => OpenCredential | undefined;
  record: (note: Explained) => void;
}

/** The sources of one-time codes of a login: read while its page asks for a code, and handed over like codes that are pushed. */
export function codeWatching({
  codeSources,
  inputs,
  log,
}: {
  codeSources: Pick<CodeSourceService, 'forLogin'>;
  inputs: LoginInputs;
  log: Log;
}) {
  return ({ connection, run, credential, record }: Watched) => {
    const link = linkOf(connection);
    const codes =
      link && 'credentialId' in link
        ? codeSources.forLogin({ projectId: connection.project_id, credentialId: link.credentialId })
        : undefined;
    const facts = { connection: connection.id, flow: run.id };
    const faults = new Map<string, SourceFault>();
    /** The mails of the codes that were handed over. */
    const mails = new Map<string, UsedMail>();
    /** The last question was for a code that the sources may have. */
    let asked = false;

    async function hand({ code, mail }: FoundCode, handed: Set<string>): Promise<void> {
      if (mail) mails.set(code, mail);
      // Two sources may have the same message.
      if (handed.has(code)) return;
      handed.add(code);
      await inputs.pushCode(run.id, connection.id, code, true).catch((error: unknown) => {
        // The login is over, or has more codes than it can try.
        if (!(error instanceof ServiceError)) throw error;
      });
      log.info({ ...facts, from: mail ? 'mailbox' : 'webhook' }, 'login.code_found');
    }

    function note(sourceId: string, fault: SourceFault | undefined): void {
      const before = faults.get(sourceId);
      if (fault) faults.set(sourceId, fault);
      else faults.delete(sourceId);
      if (!fault || before?.code === fault.code) return;
      const decision = `${fault.code}: ${fault.message} The login still waits for the code.`;
      const nothing = { url: '', title: '', evidence: [], fields: [], choices: [], next: [] };
      record({ at: new Date().toISOString(), state: 'awaiting_input', decision, ...nothing });
    }

    return {
      begin: () => codes?.begin(),

      /** Waits for an input. The sources are read meanwhile, if the page may get their codes. */
      async during(wanted: InputWanted, wait: () => Promise<Submitted>): Promise<Submitted> {
        asked = wanted.sentAt !== undefined;
        if (!codes || wanted.sentAt === undefined) {
          for (;;) {
            const submitted = await wait();
            // A code that came too late for the page before must not be typed into this one.
            if (!submitted.fromSource) return submitted;
          }
        }
        const over = new AbortController();
        const signal = AbortSignal.any([wanted.signal, over.signal]);
        const addresses = Object.values(credential()?.values ?? {}).filter((value) =>
          /^[^\s@*]{1,64}@[^\s@*]{1,189}$/.test(value),
        );
        const since = wanted.sentAt;
        const handed = new Set<string>();
        const found = (code: FoundCode) => hand(code, handed);
        codes.watch({ since, addresses, found, faulty: note, signal }).catch((error: Error) => {
          log.error({ ...facts, error: error.message, stack: error.stack }, 'login.code_sources_failed');
        });
        try {
          return await wait();
        } finally {
          over.abort(new Error('The login has its input.'));
        }
      },

      /** The outcome, with what kept the code away. */
      explained(outcome: FlowOutcome): FlowOutcome {
        const missed = outcome.errorCode === 'mfa_required' || outcome.errorCode === 'awaiting_input_timeout';
        if (!asked || !missed) return outcome;
        const reasons = [...faults.values()].map(({ code, message }) => `${message} (${code})`);
        if (reasons.length === 0) return { ...outcome, errorMessage: `${outcome.errorMessage} ${nothingCame}` };
        const errorCode = outcome.errorCode === 'mfa_required' ? 'code_source_failed' : outcome.errorCode;
        return { ...outcome, errorCode, errorMessage: `${outcome.errorMessage} ${reasons.join(' ')}` };
      },

      /** Deletes the mails of accepted codes where their sources say so; the login is over. */
      end({ acceptedCodes = [] }: FlowOutcome): void {
        codes?.close();
        const used = acceptedCodes.flatMap((code) => mails.get(code) ?? []);
        if (!codes || used.length === 0) return;
        codes.accepted(used).catch((error: Error) => {
          log.warn({ ...facts, error: error.message }, 'login.code_mail_not_deleted');
        });
      },
    };
  };
}

const nothingCame = 'The sources of the credential had no new code that fits.';
