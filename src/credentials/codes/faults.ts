import type { MailboxFault } from './mailbox.ts';
import type { MailboxSettings } from './store.ts';

/** What is wrong with a mailbox: a code for programs, and a sentence that names the mailbox. */
export interface SourceFault {
  code: `mailbox_${MailboxFault}`;
  message: string;
}

const reasons: Record<MailboxFault, string> = {
  refused: 'refuses the user name or the password',
  unreachable: 'cannot be reached',
  tls_failed: 'has no TLS connection with a certificate that can be verified',
  timeout: 'did not answer in time',
  missing: 'does not exist',
  bad_answer: 'sent an answer that is not IMAP, or too large',
  address_refused: 'is at an address that is not public, and CORRAL_ALLOW_PRIVATE_HOSTS does not list it',
  busy: 'was not read, since too many mailboxes are read at the moment',
};

export const faultOf = (settings: MailboxSettings, fault: MailboxFault): SourceFault => ({
  code: `mailbox_${fault}`,
  message: `${mailboxName(settings)} ${reasons[fault]}.`,
});

const mailboxName = ({ mailbox, username, host }: MailboxSettings) =>
  `The mailbox ${mailbox} of ${username} at ${host}`;

/** What the same user name and password would get again, and too many wrong passwords lock a mailbox. */
export const isFinal = (fault: MailboxFault): boolean =>
  fault === 'refused' || fault === 'missing' || fault === 'address_refused';
