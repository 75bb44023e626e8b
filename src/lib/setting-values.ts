import { resolve } from 'node:path';
import { commaList, withoutEnd } from './text.ts';

/** Readers of the values of settings. Each returns the value, or throws the end of a sentence that begins with the name of the setting. */

export function text(value: string) {
  return value;
}

export function path(value: string) {
  return resolve(value);
}

export function list(value: string): readonly string[] {
  return commaList(value);
}

export function spares(value: string): { readonly headless: number; readonly headful: number } {
  const counts = { headless: 0, headful: 0 };
  if (value === 'off') return counts;
  for (const part of list(value)) {
    const [, shape, count] = /^(headless|headful):(\d{1,3})$/.exec(part) ?? [];
    if (!shape) throw new Error(`is '${value}'; it takes off, or counts such as headless:2,headful:1.`);
    counts[shape as keyof typeof counts] = Number(count);
  }
  return counts;
}

export function integer(min: number, max: number) {
  return (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new Error(`is '${value}'; it takes a whole number from ${min} to ${max}.`);
    }
    return number;
  };
}

export function decimal(min: number, max: number) {
  return (value: string) => {
    const number = Number(value);
    if (!/^\d+(\.\d+)?$/.test(value) || number < min || number > max) {
      throw new Error(`is '${value}'; it takes a number from ${min} to ${max}.`);
    }
    return number;
  };
}

export function optional<T>(read: (value: string) => T) {
  return (value: string) => (value === '' ? undefined : read(value));
}

export function flag(value: string) {
  if (value !== 'true' && value !== 'false') throw new Error(`is '${value}'; it takes true or false.`);
  return value === 'true';
}

export function oneOf<const T extends string>(...allowed: T[]) {
  return (value: string) => {
    if (!(allowed as string[]).includes(value))
      throw new Error(`is '${value}'; it takes one of ${allowed.join(', ')}.`);
    return value as T;
  };
}

/** The value is a secret: a message may name the error in it, but never quotes it. */
export function secretText(least: number) {
  return (value: string) => {
    if (value !== '' && (value.length < least || /[\s,]/.test(value))) {
      throw new Error(`needs at least ${least} characters, without spaces or commas.`);
    }
    return value;
  };
}

export function regionName(value: string) {
  if (!/^[a-z\d-]+\.[a-z\d-]+$/.test(value)) throw new Error(`is '${value}'; it takes a region such as local.zone-a.`);
  return value;
}

export function httpUrl(value: string) {
  if (value === '') return '';
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new Error(`is '${value}'; it takes an address such as https://browsers.example.com.`);
  }
  return withoutEnd(value, '/');
}

export function wildcardUrl(value: string) {
  if (value !== '' && !/^https?:\/\/\*(\.[a-z\d-]+)+(:\d{1,5})?\/?$/i.test(value)) {
    throw new Error(`is '${value}'; it takes an address such as https://*.sessions.example.com.`);
  }
  return value.replace(/\/$/, '').toLowerCase();
}

export function searchUrl(value: string) {
  const fits =
    value === '' || (/^https?:\/\//i.test(value) && value.includes('%s') && URL.canParse(value.replaceAll('%s', '')));
  if (!fits)
    throw new Error(`is '${value}'; it takes an address such as https://search.example.com/?q=%s, or nothing.`);
  return value;
}

/** May contain a secret, so the message does not repeat it. */
export function headerPairs(value: string): Readonly<Record<string, string>> {
  const pairs = list(value).map((part) => {
    const [, name, encoded] = /^([\w-]+)\s*=\s*([^\s;]*)/.exec(part) ?? [];
    if (name === undefined || encoded === undefined || /%(?![\da-f]{2})/i.test(encoded))
      throw new Error('takes names and values such as authorization=Bearer%20abc, separated by commas.');
    return [name, decodeURIComponent(encoded)] as const;
  });
  return Object.fromEntries(pairs);
}

export function checkUrl(value: string) {
  if (value === 'off') return '';
  httpUrl(value);
  return value;
}

/** Contains a password, so the message does not repeat it. */
export function postgresUrl(value: string) {
  if (value !== '' && !/^postgres(ql)?:\/\//.test(value)) {
    throw new Error('does not start with postgres://; it takes postgres://user:password@host:port/database.');
  }
  // The same check as in the database client, which uses a socket if the address has no host.
  if (!URL.canParse(encodeURI(value).replace('@/', '@host/'), 'postgres://host'))
    throw new Error(
      'is not an address; it takes postgres://user:password@host:port/database. In user and password write @, /, :, # and ? as %40, %2F, %3A, %23 and %3F.',
    );
  return value;
}
