import { gap, grouped, isClickable, type Item, type Page } from './page.ts';
import { isCodeBox, purposeOf, type Purpose } from './purpose.ts';
import { once } from './once.ts';
import { submitOf } from './submit.ts';
import * as action from './words/actions.ts';
import * as named from './words/fields.ts';

/** A field of a group with what it is for. `boxes` are those of a code that takes one character each. */
export interface Field {
  item: Item;
  purpose: Purpose;
  boxes?: Item[];
}

/** Controls that belong together: a form of the document, or adjacent fields where there is none. */
export interface Group {
  fields: Field[];
  selects: Item[];
  radios: Item[];
  checkboxes: Item[];
  submit: Item | undefined;
  /** Headings and texts above the fields. */
  over: string;
  /** Everything that is written in it. */
  texts: string;
}

/** Fields of one group follow each other at no more than this distance. */
const farDown = 260;
const farAcross = 260;

const mostGroups = 16;
/** Characters of the texts that belong to one group. */
const mostOver = 1000;
const mostTexts = 2000;

export function groups(of: Page): Group[] {
  const sorted = grouped(
    of.items.filter((item) => isField(item)),
    ({ frame, el }) => `${frame.frameId}|${el.formKey ?? ''}|${el.inDialog}`,
  );
  const parts = [...sorted.values()].flatMap((together) => split(of, together));
  return likely(parts).map((together) => group(of, together));
}

/** A page with more forms than a person looks at is read by those that ask for a password, then by those that ask for text. */
function likely(parts: Item[][]): Item[][] {
  if (parts.length <= mostGroups) return parts;
  const rank = (part: Item[]) =>
    part.some(({ control }) => control === 'password') ? 0 : part.some(({ control }) => control === 'text') ? 1 : 2;
  const kept = new Set(
    parts
      .map((part) => ({ part, rank: rank(part) }))
      .sort((a, b) => a.rank - b.rank)
      .slice(0, mostGroups)
      .map(({ part }) => part),
  );
  return parts.filter((part) => kept.has(part));
}

function isField({ control, el }: Item): boolean {
  if (control === 'text' || control === 'password') {
    // An address that the page only repeats cannot be typed. An empty one is made writable when it gets the focus.
    return !el.disabled && !(el.readonly && el.filled);
  }
  return (control === 'select' || control === 'radio' || control === 'checkbox') && !el.disabled;
}

/** Splits fields that the document holds together, though they are different forms for people. */
function split(of: Page, together: Item[]): Item[][] {
  const parts: Item[][] = [];
  for (const item of together) {
    const part = parts.at(-1);
    const last = part?.at(-1);
    if (part === undefined || last === undefined || isApart(of, part, last, item)) parts.push([item]);
    else part.push(item);
  }
  return parts;
}

function isApart(of: Page, part: Item[], last: Item, item: Item): boolean {
  const { across, down } = gap(last.el.box, item.el.box);
  const oneForm = last.el.formKey !== undefined;
  if (!oneForm && (down > farDown || (across > farAcross && down < farDown))) return true;
  const isText = item.control === 'text' || item.control === 'password';
  if (!isText) return false;
  const ended =
    part.some((one) => one.control === 'password') || (!oneForm && part.some((one) => one.control === 'text'));
  if (!ended) return false;
  // A button that sends the fields before it ends them.
  return (of.inFrame.get(item.frame) ?? []).some(
    (one) =>
      one.order > last.order &&
      one.order < item.order &&
      one.control === 'button' &&
      (action.logIn.in(one.label) || action.signUp.in(one.label) || named.newsletter.in(one.label)) &&
      !action.sendCode.in(one.label),
  );
}

function group(of: Page, together: Item[]): Group {
  const typed = together.filter(({ control }) => control === 'text' || control === 'password');
  const fields = joinBoxes(typed);
  const texts = (together[0]?.frame.texts ?? []).filter((text) => text.visible && belongs(text, together));
  const top = Math.min(...together.map(({ el }) => el.box.y));
  const over = texts.filter((text) => text.box.y <= top + 10 && !text.label).map(({ text }) => text);
  return {
    fields,
    selects: together.filter(({ control }) => control === 'select'),
    radios: together.filter(({ control }) => control === 'radio'),
    checkboxes: together.filter(({ control }) => control === 'checkbox'),
    submit: submitOf(of, typed.length > 0 ? typed : together),
    over: joined(over, mostOver),
    texts: joined(texts.map(({ text }) => text)),
  };
}

export function joined(texts: string[], most = mostTexts): string {
  let left = most;
  return texts.filter((text) => (left -= text.length) >= 0).join(' · ');
}

function belongs(text: Page['texts'][number], together: Item[]): boolean {
  const [first] = together;
  if (first === undefined || text.inDialog !== first.el.inDialog) return false;
  if (text.formKey !== undefined && first.el.formKey !== undefined) return text.formKey === first.el.formKey;
  return together.some((item) => {
    const { across, down } = gap(text.box, item.el.box);
    return across < 80 && down < (text.heading ? 260 : 160);
  });
}

const mostBoxes = 10;

/** Four to ten boxes in a row for one character each are one field. */
function joinBoxes(typed: Item[]): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < typed.length; at += 1) {
    const item = typed[at];
    if (item === undefined) continue;
    const boxes = [item];
    if (isCodeBox(item)) {
      for (let next = typed[at + 1]; next !== undefined && boxes.length <= mostBoxes; next = typed[at + boxes.length]) {
        const { x, y, width } = next.el.box;
        const single = item.el.maxlength === 1 && next.el.maxlength === 1;
        const sameRow =
          Math.abs(y - item.el.box.y) <= 6 && Math.abs(width - item.el.box.width) <= 6 && x !== item.el.box.x;
        const alike = item.el.classes === next.el.classes && /code|otp|digit|pin/i.test(item.el.classes);
        if (!isCodeBox(next) || !(single || sameRow || alike) || next.el.maxlength !== item.el.maxlength) break;
        boxes.push(next);
      }
    }
    if (boxes.length >= 4 && boxes.length <= mostBoxes) {
      fields.push({ item, purpose: 'code', boxes });
      at += boxes.length - 1;
    } else {
      fields.push({ item, purpose: purposeOf(item) });
    }
  }
  return fields;
}

export function ofPurpose(group: Group, ...purposes: Purpose[]): Field[] {
  return group.fields.filter(({ purpose }) => purposes.includes(purpose));
}

const sends = once((of: Page) => of.items.some((item) => isClickable(item) && action.sendCode.in(item.label)));

/** A code beside a password, with nothing that has it sent, is the text of a picture in languages that have one word for both. */
export function settleCodes(of: Page, group: Group): void {
  const secrets = ofPurpose(group, 'password', 'pin');
  if (secrets.length === 0) return;
  for (const field of ofPurpose(group, 'code')) {
    const isAmbiguous = /验证码|驗證碼|校验码/.test(field.item.says) && !named.secondFactor.in(field.item.says);
    if (isAmbiguous && !sends(of)) field.purpose = 'captcha';
  }
}

/** Whether a select or radio button chooses the language, a country code or the like. */
export function isAside(item: Item): boolean {
  const options = item.el.options ?? [];
  const labels = options.map(({ label }) => label);
  const codes = options.filter(({ value }) => /^[a-z]{2,3}(?:[-_][a-z]{2,4})?$/i.test(value)).length;
  const languages = labels.filter((label) => languageNames.test(label.trim().toLowerCase())).length;
  if (named.language.in(item.says)) return true;
  if (languages >= 2 || (languages >= 1 && options.length <= 3)) return true;
  if (
    codes >= 3 &&
    codes >= options.length - 2 &&
    /lang|locale|sprache|idioma|lingua|langue|taal|dil|country|region/.test(
      `${item.attributes} ${item.says.toLowerCase()}`,
    )
  )
    return true;
  if (labels.filter((label) => /\+\d{1,4}/.test(label)).length >= 2) return true;
  return /\b(?:lang|language|locale|theme|timezone|currency|country|prefix)\b/.test(item.attributes);
}

const languageNames =
  /^(?:english|deutsch|francais|français|espanol|español|italiano|portugues|português|nederlands|polski|turkce|türkçe|русский|日本語|中文|简体中文|繁體中文|cestina|čeština|svenska|dansk|norsk|suomi|한국어|العربية|українська|ελληνικά|magyar|romana|română|hrvatski|slovenčina|български|עברית|ไทย|tiếng việt|bahasa indonesia|català)(?: ?[(\-–].*)?$/;
