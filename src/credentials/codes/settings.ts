import { createHash, randomBytes } from 'node:crypto';
import { errors } from '../../errors.ts';
import { newId } from '../../lib/ids.ts';
import { hasCertificates } from '../../lib/pem.ts';
import { isWellFormed } from '../../lib/text.ts';
import type { RefuseHost } from '../providers/settings.ts';
import type { CodeSource, CodeSourceInput } from './schema.ts';
import type { MailboxRow, MailboxSettings, SourceRow } from './store.ts';

/** A source as a request would have it, with the secret that is stored apart or answered once. */
export interface NewSource {
  row: SourceRow;
  /** The password of a mailbox, if it is new. */
  password?: string | undefined;
  /** The token of an address that was created. */
  token?: string | undefined;
}

const refuse = (at: number, what: string) =>
  errors.invalid_input({ detail: `one_time_code_sources: entry ${at + 1} ${what}` });

export const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Checks the list of a request against the sources that the credential has, and the hosts by the rules for destinations. */
export async function newSources(
  inputs: readonly CodeSourceInput[],
  { credentialId, known, refuseHost }: { credentialId: string; known: readonly SourceRow[]; refuseHost: RefuseHost },
): Promise<NewSource[]> {
  const seen = new Set<string>();
  const made: NewSource[] = [];
  for (const [position, input] of inputs.entries()) {
    const before = input.id === undefined ? undefined : known.find(({ id }) => id === input.id);
    if (input.id !== undefined && (!before || before.type !== input.type || seen.has(input.id)))
      throw refuse(
        position,
        `has an id that is no other ${input.type} source of the credential. Leave it out for a new one.`,
      );
    if (input.id !== undefined) seen.add(input.id);
    const base = { id: before?.id ?? newId('otc_'), credential_id: credentialId, position };
    if (input.type === 'imap') {
      const settings = await mailboxSettings(input, position, refuseHost);
      if (!input.password && !(before?.type === 'imap' && isSameServer(before, settings)))
        throw refuse(position, `has no password. The stored one is only for the server and user that it was sent for.`);
      made.push({ row: { ...base, type: 'imap', settings, token_hash: null }, password: input.password });
      continue;
    }
    const { type: _type, id: _id, ...others } = input;
    if (Object.values(others).some((value) => value !== undefined))
      throw refuse(position, 'is of type webhook, which has no other fields: the service makes its address.');
    const token = before ? undefined : randomBytes(24).toString('base64url');
    made.push({ row: { ...base, type: 'webhook', settings: {}, token_hash: token ? hashOf(token) : null }, token });
  }
  return made;
}

async function mailboxSettings(input: CodeSourceInput, at: number, refuseHost: RefuseHost): Promise<MailboxSettings> {
  const { host, username, security = 'tls', ca_bundle, password } = input;
  if (!host || !username) throw refuse(at, 'is of type imap and needs host and username.');
  const { port = security === 'tls' ? 993 : 143, mailbox = 'INBOX', from, to, subject } = input;
  if (![username, mailbox, password ?? '', from ?? '', to ?? '', subject ?? ''].every(isWellFormed))
    throw refuse(at, 'has half of a surrogate pair. Send whole characters.');
  if (password !== undefined && /[\0\r\n]/.test(password))
    throw refuse(at, 'has a password with a line break or a NUL character.');
  if (ca_bundle !== undefined && !hasCertificates(ca_bundle))
    throw refuse(at, 'has a ca_bundle that is not a list of PEM certificates.');
  const why = await refuseHost(host, port);
  if (why?.code === 'destination_refused')
    throw errors.code_source_host_refused({ host: `${host}:${port}`, remedy: why.remedy ?? '' });
  if (why?.code === 'bad_request') throw refuse(at, 'has a host that is not the name or address of a server.');
  const delete_after_use = input.delete_after_use ?? false;
  return { host, port, security, username, mailbox, from, to, subject, delete_after_use, ca_bundle };
}

const isSameServer = ({ settings }: MailboxRow, { host, port, security, username }: MailboxSettings) =>
  settings.host === host && settings.port === port && settings.security === security && settings.username === username;

/** A source as answers show it. */
export function toCodeSource({ id, type, settings }: SourceRow, webhookUrl?: string): CodeSource {
  if (type === 'webhook') return { id, type, ...(webhookUrl === undefined ? {} : { webhook_url: webhookUrl }) };
  const { ca_bundle, ...shown } = settings;
  return { id, type, ...shown, ...(ca_bundle === undefined ? {} : { has_ca_bundle: true }) };
}
