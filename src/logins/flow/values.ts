import type { ReadField } from '../reading/types.ts';
import { password, pin } from '../reading/words/fields.ts';

/** What people call a value in a credential, by the key that the reading gives a field; the best name first. */
const names: Record<string, readonly string[]> = {
  username: [
    'username',
    'user',
    'login',
    'userid',
    'loginid',
    'loginname',
    'accountname',
    'account',
    'identifier',
    'id',
  ],
  email: ['email', 'mail', 'emailaddress', 'useremail', 'loginemail'],
  phone: ['phone', 'phonenumber', 'mobile', 'mobilenumber', 'tel', 'telephone', 'cell'],
  customer_number: [
    'customernumber',
    'customerid',
    'clientnumber',
    'clientid',
    'membernumber',
    'memberid',
    'accountnumber',
    'cardnumber',
    'kundennummer',
  ],
  password: ['password', 'pass', 'passwd', 'pwd', 'passphrase', 'passwort', 'kennwort', 'secret'],
  pin: ['pin', 'pincode', 'passcode'],
  server: ['server', 'serverurl', 'host', 'hostname', 'url', 'instance', 'homeserver', 'site', 'endpoint'],
  tenant: [
    'tenant',
    'tenantid',
    'organization',
    'organisation',
    'org',
    'workspace',
    'company',
    'team',
    'realm',
    'subdomain',
    'domain',
    'directory',
  ],
  database: ['database', 'db', 'dbname', 'databasename', 'catalog'],
  account_type: ['accounttype', 'type', 'role', 'usertype', 'authsource', 'provider', 'method'],
  security_answer: ['securityanswer', 'answer', 'secretanswer'],
};

/** Which other key's values fit when the key's own are missing: many sites take the mail address as the user name. */
const substitutes: Record<string, readonly string[]> = {
  username: ['email', 'phone', 'customer_number'],
  email: ['username'],
  phone: ['username'],
  customer_number: ['username'],
  current_password: ['password'],
  pin: ['password'],
  password: ['pin'],
};

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
  const given = Object.entries(values)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => ({ name, value, plain: plain(name) }));
  const named = (wanted: readonly string[]) =>
    wanted.map((want) => given.find((one) => one.plain === want)).find((one) => one !== undefined);
  const found =
    (field.key === 'text' || field.key === 'security_answer' ? named(ownNames(field)) : undefined) ??
    named(namesOf(field.key)) ??
    named((substitutes[field.key] ?? []).flatMap(namesOf)) ??
    named(ownNames(field));
  if (!found || (field.type !== 'password' && isPassword(found.name))) return undefined;
  const value = field.options ? optionFor(field, found.value) : found.value;
  return value === undefined ? undefined : { name: found.name, value };
}

/** What is surely a password is typed where the page asks for one, whatever another field is labelled. */
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
  const same = (text: string) => text.trim().toLowerCase() === wanted.trim().toLowerCase();
  const exact = options?.find(({ value, label }) => same(value) || same(label));
  if (exact) return exact.value;
  // "Acme" for "Acme Corp. (Berlin)", where only one option has it.
  const part = plain(wanted);
  const near = part.length < 3 ? [] : (options?.filter(({ label }) => plain(label).includes(part)) ?? []);
  return near.length === 1 ? near[0]?.value : undefined;
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
  const left = Object.entries(values)
    .filter(([name, value]) => value !== '' && !used.has(name))
    .map(([name, value]) => ({ name, value }));
  if (field.options) {
    const fits = left.flatMap(({ name, value }) => {
      const option = optionFor(field, value);
      return option === undefined ? [] : [{ name, value: option }];
    });
    return fits.length === 1 ? fits[0] : undefined;
  }
  const secret = field.type === 'password';
  const fits = left.filter(({ name }) => isSecretName(name) === secret);
  // A value with an unknown name may be a password.
  const candidates = fits.length > 0 || !secret ? fits : left;
  return candidates.length === 1 ? candidates[0] : undefined;
}

export const isSecretName = (name: string) => {
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ');
  return password.in(words) || pin.in(words) || /pass|pwd|secret|kennwort/i.test(name);
};

/** Which of the keys that a login needs have no value under any of the names people use. For can_reauth. */
export function missingKeys(needed: readonly string[], given: readonly string[]): string[] {
  const plainly = new Set(given.map(plain));
  const has = (key: string) => [plain(key), ...namesOf(key)].some((name) => plainly.has(name));
  return needed.filter((key) => !has(key) && !(substitutes[key] ?? []).some(has));
}

function namesOf(key: string): readonly string[] {
  return names[key] ?? (key === 'text' ? [] : [plain(key)]);
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
