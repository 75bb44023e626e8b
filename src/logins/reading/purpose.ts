import type { Item } from './page.ts';
import * as extras from './words/extras.ts';
import * as named from './words/fields.ts';
import { words } from './words/match.ts';

/** The purpose of a single field, as far as the field itself shows it. */
export type Purpose =
  | 'email'
  | 'phone'
  | 'username'
  | 'customer_number'
  | 'password'
  | 'new_password'
  | 'confirm_password'
  | 'current_password'
  | 'pin'
  | 'code'
  | 'captcha'
  | 'server'
  | 'tenant'
  | 'database'
  | 'security_answer'
  | 'search'
  | 'personal'
  | 'unknown';

/** Names that developers give fields, as words: `user_name` and `userName` are both "user name". */
const attribute = {
  search: /\b(?:search|query|keywords?|suche|buscar|recherche|zoek|szukaj|q|s|kw|wd)\b/,
  captcha: /captcha|\bturing\b|\b(?:verify|check|valid|val|rand|image|img|pic) ?code\b|\bvcode\b|\bhuman\b/,
  code: /\b(?:otp|totp|hotp|2 ?fa|mfa|tfa|one ?time|one time code|auth ?code|sms ?code|tan|passcode|two ?factor|second ?factor|token|authenticator|pin ?code|verification(?: code)?|mfa ?code|security ?code|login ?code|code)\b/,
  email: /\be? ?mail\b|\bemail(?: ?address)?\b|\bcorreo\b|\bcourriel\b|\beposta\b|\bmail(?:adresse)?\b/,
  phone: /\b(?:phone|mobile|tel|telefon|telephone|cell|handy|msisdn)\b/,
  username:
    /user ?name|\buser(?: ?id)?\b|\busr\b|\buid\b|\blogin(?: ?id| ?name|fmt)?\b|\blogon\b|\baccount(?: ?name| ?id)?\b|\bacct\b|\bidentifier\b|\bident\b|\bidentity\b|\bnick(?: ?name)?\b|\bmember(?: ?id)?\b|\bbenutzer(?:name)?\b|\bkennung\b|\busuario\b|\butente\b|\butilisateur\b|\bidentifiant\b|\bgebruiker(?:snaam)?\b|\buzytkownik\b|\bkullanici(?: ?adi)?\b|\bj username\b|\bnetid\b|\blog\b|\bun\b|\buname\b|\buserid\b/,
  tenant:
    /\b(?:tenant|company|organi[sz]ation|org|workspace|subdomain|realm|domain|team|mandant|firma|site ?id|school)\b/,
  server: /\b(?:server|host|hostname|homeserver|instance|endpoint)\b/,
  database: /\b(?:db|database|dbname)\b/,
  password:
    /\b(?:pass ?word|password|passwd|pwd|pass|passphrase|kennwort|passwort|contrasena|clave|senha|mdp|wachtwoord|haslo|sifre|parola)\b/,
  confirm: /\b(?:confirm(?:ation)?|repeat|again|retype|verify|re ?password|password ?2|wiederholen|conf)\b/,
  fresh: /\bnew\b|\bneu(?:es)?\b|\bnouveau\b|\bnuev[ao]\b/,
  current: /\b(?:old|current|existing|alt(?:es)?|actuel|actual)\b/,
  personal:
    /\b(?:first ?name|last ?name|given ?name|family ?name|full ?name|surname|fname|lname|birth|birthday|address|street|city|zip|postal|postcode|country|gender|company ?size|invite|referral|coupon|promo)\b/,
};

/** User names that are called a code in some languages. */
const codeOfUser = words({
  en: 'user code|login id code',
  fr: 'code utilisateur|code client',
  it: 'codice utente|codice cliente',
  tr: 'kullanici kodu',
  el: 'κωδικος χρηστη',
  es: 'codigo de usuario|codigo de cliente',
});

export function purposeOf(item: Item): Purpose {
  return item.control === 'password' ? secretPurpose(item) : textPurpose(item);
}

function hints(item: Item): Set<string> {
  return new Set((item.el.autocomplete ?? '').toLowerCase().split(/\s+/));
}

/** Looks like something for digits only. */
export function isNumeric({ el }: Item): boolean {
  return (
    el.inputmode === 'numeric' ||
    el.type === 'number' ||
    /\[0-9\]|\\d/.test(el.pattern ?? '') ||
    (el.type === 'tel' && el.maxlength !== undefined && el.maxlength <= 8)
  );
}

function isShort({ el }: Item): boolean {
  return el.maxlength !== undefined && el.maxlength >= 1 && el.maxlength <= 10;
}

function secretPurpose(item: Item): Purpose {
  const { says, attributes } = item;
  const hint = hints(item);
  const passwordWords = named.password.in(says);
  if (hint.has('one-time-code')) return 'code';
  if (extras.captchaText.in(says) || attribute.captcha.test(attributes)) return 'captcha';
  if (extras.confirmPassword.in(says)) return 'confirm_password';
  if (extras.currentPassword.in(says)) return 'current_password';
  if (extras.newPassword.in(says)) return 'new_password';
  if (extras.securityQuestion.in(says)) return 'security_answer';
  const oneTime = named.secondFactor.in(says) || /\b(?:otp|totp|2 ?fa|mfa|one ?time)\b/.test(attributes);
  if (oneTime) return 'code';
  if (!passwordWords && named.pin.in(says)) return 'pin';
  // A token that is typed like a password and has no length is an access token of an API, which serves as the password.
  if (!passwordWords && named.code.in(says) && (isNumeric(item) || isShort(item))) return 'code';
  if (attribute.confirm.test(attributes) && !hint.has('current-password')) return 'confirm_password';
  if (!passwordWords && /\bpin\b/.test(attributes) && !attribute.password.test(attributes)) return 'pin';
  if (attribute.current.test(attributes) && attribute.password.test(attributes)) {
    return hint.has('current-password') && !/\bold\b/.test(attributes) ? 'password' : 'current_password';
  }
  if (hint.has('new-password') || attribute.fresh.test(attributes)) return 'new_password';
  return 'password';
}

function textPurpose(item: Item): Purpose {
  const { el, says, attributes } = item;
  const hint = hints(item);
  const ownName = `${el.name ?? ''} ${el.id ?? ''}`.trim();
  if (hint.has('one-time-code')) return 'code';
  if (hint.has('current-password')) return 'password';
  if (hint.has('new-password')) return 'new_password';
  if (el.type === 'search' || el.role === 'searchbox') return 'search';
  if (hint.has('username')) return el.type === 'email' ? 'email' : byWords(item) === 'email' ? 'email' : 'username';
  if (named.search.in(says) && !named.username.in(says)) return 'search';
  // A picker of the language that is drawn as a text field.
  if (named.language.in(says) && !named.username.in(says)) return 'search';
  if (/^(?:q|s|query|search|keywords?|kw|wd|term)$/i.test(el.name ?? '')) return 'search';
  if (el.tag === 'textarea') return 'personal';
  if (extras.captchaText.in(says) || attribute.captcha.test(attributes)) return 'captcha';
  if (hint.has('email')) return 'email';
  if (
    ['given-name', 'family-name', 'name', 'bday', 'street-address', 'postal-code', 'country'].some((one) =>
      hint.has(one),
    )
  )
    return 'personal';
  const byLabel = byWords(item);
  if (byLabel !== 'unknown') return byLabel;
  if (ownName !== '' && attribute.search.test(attributes)) return 'search';
  return byAttributes(item);
}

function byWords(item: Item): Purpose {
  const { el, says } = item;
  if (named.notCode.in(says)) return 'personal';
  if (extras.securityQuestion.in(says)) return 'security_answer';
  const isTenant = extras.tenant.in(says);
  if (named.code.in(says) && !codeOfUser.in(says) && !(isTenant && !isNumeric(item)) && !named.email.in(says))
    return 'code';
  if (named.recoveryCode.in(says)) return 'code';
  if (el.type === 'email') return 'email';
  if (el.type === 'url') return 'server';
  if (extras.customerNumber.in(says)) return 'customer_number';
  const isUsername = named.username.in(says);
  if (named.email.in(says)) return isUsername ? 'username' : 'email';
  if (extras.server.in(says) && !isUsername) return 'server';
  if (extras.database.in(says)) return 'database';
  if (named.password.in(says) && !isUsername) return extras.confirmPassword.in(says) ? 'confirm_password' : 'password';
  if (named.phone.in(says)) return isUsername ? 'username' : 'phone';
  if (named.pin.in(says)) return 'pin';
  if (isUsername) return 'username';
  if (isTenant) return 'tenant';
  if (extras.personal.in(says)) return 'personal';
  if (el.type === 'tel' && !isShort(item)) return 'phone';
  return 'unknown';
}

function byAttributes(item: Item): Purpose {
  const { attributes, el } = item;
  if (attribute.personal.test(attributes)) return 'personal';
  if (
    attribute.code.test(attributes) &&
    !attribute.email.test(attributes) &&
    (isNumeric(item) || isShort(item) || !attribute.username.test(attributes))
  )
    return 'code';
  if (attribute.email.test(attributes)) return 'email';
  if (attribute.database.test(attributes)) return 'database';
  if (attribute.server.test(attributes)) return 'server';
  if (attribute.tenant.test(attributes)) return 'tenant';
  if (attribute.password.test(attributes)) return 'password';
  if (attribute.username.test(attributes)) return 'username';
  if (attribute.phone.test(attributes)) return 'phone';
  if (isNumeric(item) && el.maxlength !== undefined && el.maxlength >= 4 && el.maxlength <= 8) return 'code';
  return 'unknown';
}

/** A box for one character of a code. */
export function isCodeBox({ el, control }: Item): boolean {
  if (control !== 'text' && control !== 'password') return false;
  const marked = /(?:^|[\s_-])(?:code|otp|digit|pin)[\s_-]?(?:input|box|field|digit)/i.test(el.classes);
  return (
    marked || el.maxlength === 1 || (el.box.width <= 80 && el.box.height >= el.box.width * 0.6 && el.box.height <= 100)
  );
}
