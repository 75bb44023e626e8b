import { Secret, TOTP } from 'otpauth';
import { errors } from '../errors.ts';
import { withoutEnd } from '../lib/text.ts';
import { urlOf } from '../lib/urls.ts';

const algorithms = ['SHA1', 'SHA256', 'SHA512'] as const;

/** What a one-time code is made from. `secret` is base32 in upper case, without padding. */
export interface Totp {
  secret: string;
  algorithm: (typeof algorithms)[number];
  digits: number;
  /** Seconds for which a code is valid. */
  period: number;
}

export interface TotpCode {
  code: string;
  /** The end of the window: the next code is valid from then on. */
  expiresAt: Date;
  /** The number of the window. Two codes of the same window are the same code. */
  counter: number;
}

/**
 * Reads what sites show when two-factor login is set up: a base32 secret, often in groups and in lower case, or an
 * otpauth:// URI. Messages never quote the secret.
 */
export function parseTotp(text: string, field = 'totp_secret'): Totp {
  const refuse = (what: string) => errors.invalid_input({ detail: `${field} ${what}` });
  const given = text.trim();
  if (!/^otpauth:/i.test(given)) return { secret: base32(given, refuse), algorithm: 'SHA1', digits: 6, period: 30 };

  const uri = urlOf(given);
  if (!uri) throw refuse('is not an otpauth:// URI that can be read. Send the base32 secret instead.');
  const { host, searchParams } = uri;
  if (host.toLowerCase() !== 'totp')
    throw refuse('is an otpauth:// URI of another kind than totp; only codes by time are generated.');
  const algorithm = (searchParams.get('algorithm') ?? 'SHA1').toUpperCase().replace('-', '');
  if (!isAlgorithm(algorithm)) throw refuse(`has an algorithm that is not one of ${algorithms.join(', ')}.`);
  const number = (name: string, standard: number, min: number, max: number) => {
    const value = searchParams.get(name) ?? String(standard);
    if (!/^\d{1,4}$/.test(value) || Number(value) < min || Number(value) > max)
      throw refuse(`has ${name} that is not a number from ${min} to ${max}.`);
    return Number(value);
  };
  return {
    secret: base32(searchParams.get('secret') ?? '', refuse),
    algorithm,
    digits: number('digits', 6, 6, 8),
    period: number('period', 30, 10, 300),
  };
}

/** The code of the window that `at` is in. */
export function totpCode({ secret, algorithm, digits, period }: Totp, at: number = Date.now()): TotpCode {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm, digits, period });
  const counter = totp.counter({ timestamp: at });
  return { code: totp.generate({ timestamp: at }), counter, expiresAt: new Date((counter + 1) * period * 1000) };
}

const isAlgorithm = (text: string): text is Totp['algorithm'] => (algorithms as readonly string[]).includes(text);

/** Sites show secrets in groups, with blanks or dashes between them. */
function base32(text: string, refuse: (what: string) => Error): string {
  const secret = withoutEnd(text.replace(/[\s-]/g, ''), '=').toUpperCase();
  if (secret === '') throw refuse('has no secret. Send the base32 text that the site shows.');
  const wrong = /[^A-Z2-7]/.exec(secret);
  if (wrong)
    throw refuse(
      `is not base32 (A to Z, 2 to 7): character ${wrong.index + 1} does not fit. Send the text that the site shows for manual entry, or an otpauth:// URI.`,
    );
  if (secret.length < 8) throw refuse('is too short: a base32 secret has 8 characters at least, and mostly 16 or 32.');
  if (secret.length > 1024) throw refuse('is too long: a base32 secret has 1024 characters at most.');
  return secret;
}
