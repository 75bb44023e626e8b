import { turns } from '../../lib/turns.ts';
import type { FieldOption, ReadField } from '../reading/types.ts';
import { password, pin } from '../reading/words/fields.ts';

/** What people call a value in a credential, by the key that the reading gives a field; the best name first. */
const names = new Map<string, readonly string[]>(
  Object.entries({
    username: 'username user login userid loginid loginname accountname account identifier id',
    email: 'email mail emailaddress useremail loginemail',
    phone: 'phone phonenumber mobile mobilenumber tel telephone cell',
    customer_number:
      'customernumber customerid clientnumber clientid membernumber memberid accountnumber cardnumber kundennummer',
    password: 'password pass passwd pwd passphrase passwort kennwort secret',
    pin: 'pin pincode passcode',
    server: 'server serverurl host hostname url instance homeserver site endpoint',
    tenant: 'tenant tenantid organization organisation org workspace company team realm subdomain domain directory',
    database: 'database db dbname databasename catalog',
    account_type: 'accounttype type role usertype authsource provider method',
    security_answer: 'securityanswer answer secretanswer',
  }).map(([key, words]) => [key, words.split(' ')]),
);

/** Which other key's values fit when the key's own are missing: many sites take the mail address as the user name. */
const substitutes = new Map<string, readonly string[]>(
  Object.entries({
    username: ['email', 'phone', 'customer_number'],
    email: ['username'],
    phone: ['username'],
    customer_number: ['username'],
    current_password: ['password'],
    pin: ['password'],
    password: ['pin'],
  }),
);

export interface FoundValue {
  /** The name that the value has in the credential. */
  name: string;
  value: string;
}

/** The credential's value for a field, by the names people use. Undefined when there is none, or when it does not fit. */
export function valueFor(field: ReadField, values: Record<string, string>): FoundValue | undefined {
  // A new password is for a person to choose, and a code is of the moment.
  if (
    field.key === 'new_password' ||
    field.type === 'code' ||
    field.type === 'totp_code' ||
    field.type === 'totp_secret'
  )
    return undefined;
  const { byName } = prepared(values);
  const named = (wanted: readonly string[]) => wanted.map((want) => byName.get(want)).find((one) => one !== undefined);
  const found =
    (field.key === 'text' || field.key === 'security_answer' ? named(ownNames(field)) : undefined) ??
    named(namesOf(field.key)) ??
    named((substitutes.get(field.key) ?? []).flatMap(namesOf)) ??
    named(ownNames(field));
  if (!found || (field.type !== 'password' && isPassword(found.name))) return undefined;
  const value = field.options ? optionFor(field, found.value) : found.value;
  return value === undefined ? undefined : { name: found.name, value };
}

/** Values with these names are typed only where the page asks for a password, also if another field has the same label. */
const isPassword = (name: string) => /^(?:password|passwd|pwd|passphrase|passwort|kennwort)$/.test(plain(name));

/** The name under which a person's value is kept: the credential's own when it has one for this field. */
export function nameFor(field: ReadField, values: Record<string, string>): string {
  if (field.key === 'new_password' || field.key === 'current_password')
    return nameFor({ ...field, key: 'password' }, values);
  const own = valueFor({ ...field, options: undefined }, values);
  if (own) return own.name;
  return field.key === 'text' ? slug(field.label) || slug(field.id) || 'text' : field.key;
}

/** The option's value, for what a person or a credential calls it. */
export function optionFor({ options }: ReadField, wanted: string): string | undefined {
  const known = options && preparedOptions(options);
  return known && (exactOption(known, wordOf(wanted)) ?? nearOption(known, plain(wordOf(wanted) ?? '')));
}

/**
 * A credential's value for a field that no name fits, where it can be no other: one of those that no other field took.
 * A secret is for a password, and nothing else is.
 */
export function leftFor(
  field: ReadField,
  values: Record<string, string>,
  used: ReadonlySet<string>,
): FoundValue | undefined {
  const left = prepared(values).entries.filter(({ name }) => !used.has(name));
  if (field.options) {
    const options = preparedOptions(field.options);
    // Among very many values, a value inside a label is no sign.
    const nearly = left.length <= mostNear;
    const fits = left.flatMap(({ name, word, plainWord }) => {
      const option = exactOption(options, word) ?? (nearly ? nearOption(options, plainWord) : undefined);
      return option === undefined ? [] : [{ name, value: option }];
    });
    return fits.length === 1 ? fits[0] : undefined;
  }
  const secret = field.type === 'password';
  const fits = left.filter((one) => one.secret === secret);
  // A value with an unknown name may be a password.
  const candidates = fits.length > 0 || !secret ? fits : left;
  const [only] = candidates;
  return only && candidates.length === 1 ? { name: only.name, value: only.value } : undefined;
}

/** Characters of the longest text of a page that is read. No text contains a longer value. */
const longestText = 300;
/** How many values are looked for within labels, and the characters of a label that they are looked for in. */
const mostNear = 20;
const longestNear = 100;

interface PreparedValue extends FoundValue {
  secret: boolean;
  /** As texts of a page are compared with it; undefined when it is too long to be in one. */
  word: string | undefined;
  plainWord: string;
}

interface PreparedValues {
  /** Those that are not empty. */
  entries: PreparedValue[];
  byName: Map<string, PreparedValue>;
}

/** A credential has a hundred long values, and a page asks for each of them once a field: both are prepared once. */
const preparedBefore = new WeakMap<Record<string, string>, PreparedValues>();

export function prepared(values: Record<string, string>): PreparedValues {
  const before = preparedBefore.get(values);
  if (before) return before;
  const found: PreparedValues = { entries: [], byName: new Map() };
  for (const [name, value] of Object.entries(values)) {
    if (value === '') continue;
    const word = wordOf(value);
    const one = { name, value, secret: isSecretName(name), word, plainWord: plain(word ?? '') };
    found.entries.push(one);
    const plainName = plain(name);
    if (!found.byName.has(plainName)) found.byName.set(plainName, one);
  }
  preparedBefore.set(values, found);
  return found;
}

const wordOf = (text: string) => {
  const word = text.trim();
  return word.length > longestText ? undefined : word.toLowerCase();
};

interface PreparedOptions {
  byWord: Map<string, string>;
  labels: { plain: string; value: string }[];
}

const optionsBefore = new WeakMap<readonly FieldOption[], PreparedOptions>();

/** A page can have thousands of options whose labels become eighteen times as long without accents, so they are prepared in pieces. */
export async function prepareOptions(fields: readonly ReadField[]): Promise<void> {
  const turn = turns();
  for (const { options } of fields) {
    if (options === undefined || optionsBefore.has(options)) continue;
    preparedOptions(options);
    await turn();
  }
}

function preparedOptions(options: readonly FieldOption[]): PreparedOptions {
  const before = optionsBefore.get(options);
  if (before) return before;
  const found: PreparedOptions = { byWord: new Map(), labels: [] };
  for (const { value, label } of options) {
    for (const text of [value, label]) {
      const word = text.trim().toLowerCase();
      if (!found.byWord.has(word)) found.byWord.set(word, value);
    }
    found.labels.push({ plain: plain(label).slice(0, longestNear), value });
  }
  optionsBefore.set(options, found);
  return found;
}

const exactOption = ({ byWord }: PreparedOptions, word: string | undefined) =>
  word === undefined ? undefined : byWord.get(word);

/** "Acme" for "Acme Corp. (Berlin)", where only one option has it. */
function nearOption({ labels }: PreparedOptions, part: string): string | undefined {
  const near = part.length < 3 ? [] : labels.filter((label) => label.plain.includes(part));
  return near.length === 1 ? near[0]?.value : undefined;
}

export const isSecretName = (name: string) => {
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ');
  return password.in(words) || pin.in(words) || /pass|pwd|secret|kennwort/i.test(name);
};

/** Names of values that pages show while they are typed. */
export const isShownName = (name: string) =>
  /user|mail|login|phone|identif|name|tenant|server|domain|url|account/i.test(name) && !isSecretName(name);

/** Whether these names have one for a key, of those that people use. For can_reauth. */
export function namesFor(given: readonly string[]): (key: string) => boolean {
  const plainly = new Set(given.map(plain));
  const has = (key: string) => [plain(key), ...namesOf(key)].some((name) => plainly.has(name));
  return (key) => has(key) || (substitutes.get(key) ?? []).some(has);
}

function namesOf(key: string): readonly string[] {
  return names.get(key) ?? (key === 'text' ? [] : [plain(key)]);
}

/** What the page calls the field: its label, or its name among the selectors. */
function ownNames(field: ReadField): string[] {
  return [field.label, field.placeholder ?? '', field.id].map(plain).filter((name) => name !== '');
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^\p{L}\p{N}]/gu, '');
const slug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_|_$/g, '')
    .slice(0, 60);
