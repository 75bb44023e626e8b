import { isWellFormed } from '../../lib/text.ts';
import type { Contents } from './source.ts';

/** A field of an entry, in the form common to all stores. */
export interface Field {
  kind: 'username' | 'password' | 'totp' | 'other';
  label: string;
  value: string;
}

const most = 100;
const longest = 10_000;
/** Of an entry, so many fields are looked at, and so many characters of each label: a store can answer with 8 MB of either. */
const mostFields = 1000;
const longestLabel = 255;

/** The values by the names that people use. The first field of a name wins; values that are too long or no text are left out. */
export function contentsOf(fields: readonly Field[]): Contents {
  const values = new Map<string, string>();
  let totp: string | undefined;
  // The fields that a store itself takes for the user name and the password come before those that are only called so.
  const ordered = [...fields.filter(({ kind }) => kind !== 'other'), ...fields.filter(({ kind }) => kind === 'other')];
  for (const { kind, label, value } of ordered.slice(0, mostFields)) {
    if (value === '' || value.length > longest || !isWellFormed(value)) continue;
    if (kind === 'totp') {
      totp ??= value;
      continue;
    }
    const key = kind === 'other' ? keyOf(label) : kind;
    if (key !== '' && !values.has(key) && values.size < most) values.set(key, value);
  }
  return { values: Object.fromEntries(values), totp };
}

/** The same for a store with entries that are plain tables: some names mean a TOTP secret. */
export function contentsOfTable(table: Record<string, unknown>): Contents {
  const fields = Object.entries(table)
    .slice(0, mostFields)
    .flatMap(([label, value]): Field[] => {
      if (typeof value !== 'string' && typeof value !== 'number') return [];
      const kind = totpNames.has(keyOf(label)) ? ('totp' as const) : ('other' as const);
      return [{ kind, label, value: String(value) }];
    });
  return contentsOf(fields);
}

/** What every login may type of an item, by the names that people give it. */
const loginNames = new Set([
  'username',
  'user',
  'userid',
  'login',
  'loginid',
  'loginname',
  'accountname',
  'email',
  'emailaddress',
  'mail',
  'useremail',
  'loginemail',
  'password',
  'passwd',
  'pass',
  'pwd',
  'passphrase',
  'passwort',
  'kennwort',
]);

/**
 * The values that pages may ask for: those of every login, and the fields that the provider names. An item of a store has more
 * than a login needs, such as recovery codes and card numbers, and the labels of a page must not choose among them.
 */
export function forLogins({ values, totp }: Contents, fields: readonly string[]): Contents {
  const named = new Set(fields.map(keyOf));
  const typed = Object.entries(values).filter(([key]) => loginNames.has(key.replaceAll('_', '')) || named.has(key));
  return { values: Object.fromEntries(typed), totp };
}

const totpNames = new Set([
  'totp',
  'totp_secret',
  'totp_seed',
  'otp',
  'otp_secret',
  'otpauth',
  'mfa_secret',
  '2fa_secret',
]);

/** `e_mail_address` for "E-mail address". */
function keyOf(label: string): string {
  const words = label
    .trim()
    .slice(0, longestLabel)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '_');
  return words.replaceAll(/^_|_$/g, '');
}
