import { isAside, joined, ofPurpose, type Field, type Group } from './groups.ts';
import { grouped, type Item, type Page } from './page.ts';
import type { Purpose } from './purpose.ts';
import type { FieldKey, FieldOption, FieldType, LegacyFieldType, MfaType, ReadField } from './types.ts';
import * as demand from './words/demands.ts';
import * as extras from './words/extras.ts';
import * as named from './words/fields.ts';
import { sent } from './words/texts.ts';

const keys: Record<Purpose, FieldKey> = {
  email: 'email',
  phone: 'phone',
  username: 'username',
  customer_number: 'customer_number',
  password: 'password',
  new_password: 'new_password',
  confirm_password: 'new_password',
  current_password: 'current_password',
  pin: 'pin',
  code: 'code',
  captcha: 'captcha',
  server: 'server',
  tenant: 'tenant',
  database: 'database',
  security_answer: 'security_answer',
  search: 'text',
  personal: 'text',
  unknown: 'text',
};

const types: Partial<Record<Purpose, FieldType>> = {
  email: 'identifier',
  phone: 'identifier',
  username: 'identifier',
  customer_number: 'identifier',
  password: 'password',
  new_password: 'password',
  confirm_password: 'password',
  current_password: 'password',
  pin: 'password',
  code: 'code',
};

/** The fields of a form as the flow asks for them, in the order of the page. */
export function readFields(of: Page, group: Group): ReadField[] {
  settleIdentifier(group);
  const app = codeSource(of, group);
  const typed = group.fields
    .filter(({ purpose, item }) => purpose !== 'search' && !(purpose === 'personal' && !item.el.required))
    .map((field) => ({ order: field.item.order, field: typedField(field, app, group) }));
  const chosen = [...group.selects, ...radioSets(group)]
    .map((choice) => ({
      order: Array.isArray(choice) ? (choice[0]?.order ?? 0) : choice.order,
      field: optionField(choice),
    }))
    .filter((one): one is { order: number; field: ReadField } => one.field !== undefined);
  const taken = new Map<string, number>();
  return [...typed, ...chosen]
    .sort((a, b) => a.order - b.order)
    .map(({ field }) => {
      const times = (taken.get(field.id) ?? 0) + 1;
      taken.set(field.id, times);
      return times === 1 ? field : { ...field, id: `${field.id}_${times}` };
    });
}

/** Where no field says that it takes the identifier, the text field before the password does. */
function settleIdentifier(group: Group): void {
  if (ofPurpose(group, 'username', 'email', 'phone', 'customer_number').length > 0) return;
  const secret = group.fields.find(({ purpose }) => purpose === 'password' || purpose === 'pin');
  const open = group.fields.filter(
    ({ purpose, item }) => purpose === 'unknown' && (secret === undefined || item.order < secret.item.order),
  );
  const found = secret === undefined ? open[0] : open.at(-1);
  if (found !== undefined) found.purpose = found.item.el.type === 'email' ? 'email' : 'username';
  else if (group.fields.length === 1 && secret === undefined) {
    // A customer number or a workspace alone is what the site knows the person by; a tenant stays a tenant.
    return;
  } else if (secret !== undefined) {
    const before = group.fields
      .filter(({ purpose, item }) => purpose === 'personal' && item.order < secret.item.order)
      .at(-1);
    if (before !== undefined) before.purpose = 'username';
  }
}

type CodeSource = { type: 'code' | 'totp_code'; mfaType?: MfaType };

/** Where a code comes from, by what the page says around the field and at its head. */
function codeSource(of: Page, group: Group): CodeSource {
  const code = ofPurpose(group, 'code')[0];
  if (code === undefined) return { type: 'code' };
  const own = code.item.says;
  const short = of.texts
    .filter(({ text, inDialog }) => text.length <= 300 && inDialog === code.item.el.inDialog)
    .map(({ text }) => text);
  const around = [own, group.over, group.texts, of.snapshot.title, ...short.slice(0, 30)];
  if (named.recoveryCode.in(own)) return { type: 'code' };
  const clickable = new Set(of.items.map(({ label }) => label));
  const plainTexts = around.filter((text) => !clickable.has(text));
  const isSent = sent.in(...plainTexts);
  if (named.authenticatorApp.in(...plainTexts) && !isSent) return { type: 'totp_code', mfaType: 'totp' };
  if (isSent || demand.textMessage.in(...plainTexts)) {
    if (demand.textMessage.in(...plainTexts) || named.phone.in(...plainTexts)) return { type: 'code', mfaType: 'sms' };
    if (named.email.in(...plainTexts)) return { type: 'code', mfaType: 'email' };
    return { type: 'code' };
  }
  if (named.authenticatorApp.in(...plainTexts)) return { type: 'totp_code', mfaType: 'totp' };
  const attributes = /\b(?:totp|otp|2 ?fa|mfa|tfa|two ?factor|authenticator)\b/.test(code.item.attributes);
  if (named.secondFactor.in(...plainTexts) || attributes) return { type: 'totp_code', mfaType: 'totp' };
  return { type: 'code' };
}

function typedField({ item, purpose, boxes }: Field, source: CodeSource, group: Group): ReadField {
  const { el } = item;
  const isCode = purpose === 'code';
  const type: FieldType = isCode ? source.type : (types[purpose] ?? 'text');
  const key = keys[purpose];
  const essential = type !== 'text' && !(isCode && group.fields.length > 1 && isOptional(item));
  return {
    id: isCode
      ? 'code'
      : type === 'text'
        ? key
        : purpose === 'pin'
          ? 'pin'
          : purpose.endsWith('_password')
            ? purpose
            : type,
    ref: el.ref,
    ...(boxes === undefined ? {} : { refs: boxes.map((box) => box.el.ref) }),
    type,
    key,
    label: boxes === undefined ? item.label : boxLabel(item),
    required:
      essential ||
      el.required ||
      (['tenant', 'security_answer', 'captcha'].includes(purpose) && !el.filled && !isOptional(item)),
    filled: el.filled,
    selectors: [...el.selectors],
    legacyType: legacyType(item, purpose, type),
    ...(el.description ? { hint: el.description } : {}),
    ...placeholderOf(el),
    ...(isCode && source.mfaType !== undefined ? { mfaType: source.mfaType } : {}),
  };
}

/** How the value of an input with a picker is written. */
const written = new Map([
  ['date', 'YYYY-MM-DD'],
  ['time', 'HH:MM'],
  ['month', 'YYYY-MM'],
  ['week', 'YYYY-Www'],
  ['datetime-local', 'YYYY-MM-DDTHH:MM'],
]);

function placeholderOf(el: Item['el']): { placeholder?: string } {
  const placeholder = el.placeholder || written.get(el.type ?? '');
  return placeholder ? { placeholder } : {};
}

function boxLabel(item: Item): string {
  const own = item.el.near || item.label;
  return named.code.in(own) && own.length <= 80 ? own : 'Code';
}

function isOptional(item: Item): boolean {
  if (item.el.required) return false;
  return /optional|if enabled|if you have|falls|facultati|opcional|opzionale|optioneel|opcjonaln|isteğe|необязательн|任意|可选|選填/i.test(
    `${item.says} ${item.el.near} ${item.el.description ?? ''}`,
  );
}

function legacyType({ el }: Item, purpose: Purpose, type: FieldType): LegacyFieldType {
  if (type === 'totp_code') return 'totp';
  if (type === 'code') return 'code';
  if (type === 'password') return 'password';
  if (purpose === 'email' || el.type === 'email') return 'email';
  if (purpose === 'phone' || el.type === 'tel') return 'tel';
  if (el.type === 'number') return 'number';
  return el.type === 'url' ? 'url' : 'text';
}

function radioSets(group: Group): Item[][] {
  const sets = grouped(group.radios, ({ el }) => el.name ?? '');
  return [...sets.values()].filter((set) => set.length > 1);
}

/** A select or a set of radio buttons that says where or as what to log in. Others keep what they have. */
function optionField(choice: Item | Item[]): ReadField | undefined {
  const set = Array.isArray(choice) ? choice : [choice];
  const [first] = set;
  if (first === undefined) return undefined;
  const isSet = Array.isArray(choice);
  if (!isSet && isAside(first)) return undefined;
  const options: FieldOption[] = isSet
    ? set.map(({ el, label }, at) => ({ label, value: String(at), selected: el.checked === true, ref: el.ref }))
    : (first.el.options ?? []).map(({ label, value, selected }) => ({ label, value, selected }));
  if (isSet && set.every(({ says }) => named.remember.in(says))) return undefined;
  const filled = options.some(({ selected, value }) => selected && value !== '');
  const says = isSet ? joined([first.el.near, ...set.map((one) => one.label)]) : first.says;
  const key = optionKey(says, `${first.attributes} ${first.el.name ?? ''}`);
  if (key === 'text' && filled) return undefined;
  return {
    id: key === 'text' ? 'option' : key,
    ref: first.el.ref,
    type: 'text',
    key,
    label: isSet ? first.el.near || first.label : first.label,
    // What no name says the purpose of may be left as it is; a credential may have a value for it all the same.
    required: !filled && (key !== 'text' || isSet || first.el.required),
    filled,
    options,
    selectors: [...first.el.selectors],
    legacyType: 'text',
  };
}

function optionKey(says: string, attributes: string): FieldKey {
  if (extras.database.in(says)) return 'database';
  if (extras.accountType.in(says)) return 'account_type';
  if (extras.server.in(says)) return 'server';
  if (extras.tenant.in(says)) return 'tenant';
  if (/\b(?:db|database)\b/.test(attributes)) return 'database';
  if (/\b(?:server|host)\b/.test(attributes)) return 'server';
  if (/\b(?:domain|tenant|company|org|organization)\b/.test(attributes)) return 'tenant';
  const source =
    /\b(?:auth|realm|login ?(?:type|source)|user ?type|role|account ?type|provider|source|directory|method)\b/;
  return source.test(attributes) ? 'account_type' : 'text';
}

/** The box that keeps the person logged in. In a language that is not known, the only box of a login form is that. */
export function rememberOf(group: Group): { ref: string; checked: boolean } | undefined {
  const boxes = group.checkboxes;
  const found =
    boxes.find(
      ({ says, attributes }) => named.remember.in(says) || /remember|persist|keep|stay|rememberme/.test(attributes),
    ) ??
    (boxes.length === 1 && !demand.terms.in(boxes[0]?.says) && boxes[0]?.el.required === false ? boxes[0] : undefined);
  return found === undefined ? undefined : { ref: found.el.ref, checked: found.el.checked === true };
}
