import type { OpenCredential } from '../../credentials/service.ts';
import type { ReadField, Reading } from '../reading/types.ts';

export const isCode = ({ type }: Pick<ReadField, 'type'>) => type === 'code' || type === 'totp_code';

/** A code that a site sent is not the one of an authenticator app. */
export function takesGenerated(field: ReadField, reading: Reading): boolean {
  return field.type === 'totp_code' || codeChannel(field, reading) === 'other';
}

/** How the code comes, by the words around the field. */
export function codeChannel(field: ReadField, reading: Reading): 'sms' | 'email' | 'call' | 'other' {
  const { mfaType } = field;
  if (mfaType === 'sms' || mfaType === 'email' || mfaType === 'call') return mfaType;
  const text = [field.label, field.hint, field.placeholder, reading.externalMessage].join(' ').toLowerCase();
  if (/\bsms\b|text message|texted|mobile (phone|number)|phone number/.test(text)) return 'sms';
  if (/e-?mail|@|inbox/.test(text)) return 'email';
  if (/phone call|call you|called/.test(text)) return 'call';
  return 'other';
}

/** Whether the page asks for a code that a source of the credential may have. Codes of an authenticator app are in no mail. */
export const asksSources = (credential: OpenCredential | undefined, fields: readonly ReadField[]): boolean =>
  (credential?.codeSources?.length ?? 0) > 0 && fields.some((field) => field.type === 'code');
