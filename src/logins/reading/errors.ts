import { groups, type Group } from './groups.ts';
import { gap, isClickable, page, type Page } from './page.ts';
import type { Purpose } from './purpose.ts';
import type { TextBlock } from './snapshot.ts';
import type { PageError, PageErrorKind, ReadContext } from './types.ts';
import * as error from './words/errors.ts';
import { captchaText } from './words/extras.ts';
import * as named from './words/fields.ts';
import { plain } from './words/match.ts';
import { cookies } from './words/texts.ts';

const badClass =
  /error|invalid|danger|alert|warn|fail|fehler|erreur|toast|snackbar|feedback|notice|notification|flash|message|help-?block|rejected/i;
const goodClass = /success|info\b|cookie|consent|hint|tooltip/i;

/** The text by which the site refuses, if there is one: by role, by class, by place, by being new since the submit. */
export function errorOf(of: Page, form: Group | undefined, context: ReadContext): PageError | undefined {
  const before = context.before === undefined ? undefined : textsOf(context.before);
  const stayed = form !== undefined && context.before !== undefined && asksTheSame(form, context.before);
  const away = form === undefined && of.items.filter(isClickable).length >= 4;
  let best: { text: string; score: number; fresh: boolean } | undefined;
  for (const text of [...of.texts, ...described(of)]) {
    const fresh = before !== undefined && !before.has(plain(text.text));
    const score = scoreOf(text, { fresh, stayed, away, form, context });
    if (score >= 4 && (best === undefined || score > best.score)) best = { text: text.text, score, fresh };
  }
  return best === undefined
    ? undefined
    : { text: best.text, kind: kindOf(best.text, form, context), fresh: best.fresh };
}

function textsOf(snapshot: NonNullable<ReadContext['before']>): Set<string> {
  return new Set(
    snapshot.frames.flatMap((frame) => [
      ...frame.texts.filter(({ visible }) => visible).map(({ text }) => plain(text)),
      ...frame.elements.filter(({ invalid }) => invalid === true).map(({ description }) => plain(description)),
    ]),
  );
}

/** What fields that are marked as wrong are described by. */
function described(of: Page): TextBlock[] {
  return of.items
    .filter(({ el }) => el.invalid === true && (el.description ?? '') !== '')
    .map(({ el }) => ({
      text: el.description ?? '',
      box: el.box,
      classes: 'invalid',
      inDialog: el.inDialog,
      live: false,
      visible: true,
      ...(el.formKey === undefined ? {} : { formKey: el.formKey }),
    }));
}

/** The form asks for what it asked before the submit. On the next step of a login a new text is no error. */
function asksTheSame(form: Group, before: NonNullable<ReadContext['before']>): boolean {
  const asked = (group: Group) => group.fields.map(({ purpose }) => purpose).join();
  return groups(page(before)).some((group) => asked(group) === asked(form));
}

interface Circumstances {
  fresh: boolean;
  /** The form of before the submit is still there. */
  stayed: boolean;
  /** There is no form, and the page has things of its own to click. */
  away: boolean;
  form: Group | undefined;
  context: ReadContext;
}

function scoreOf(text: TextBlock, { fresh, stayed, away, form, context }: Circumstances): number {
  const marks = `${text.classes} ${text.id ?? ''}`;
  const refuses = error.refused.in(text.text);
  const bars = error.locked.in(text.text) || error.tooMany.in(text.text) || error.siteFault.in(text.text);
  const marked = badClass.test(marks) && !goodClass.test(marks);
  const submitted = (context.submitted?.length ?? 0) > 0;
  const isMessage =
    text.text.length >= 4 && text.label !== true && text.tag !== 'button' && text.tag !== 'a' && !cookies.in(text.text);
  if (!isMessage) return 0;
  if (text.heading === true && !refuses && !bars) return 0;
  let score = 0;
  if (refuses) score += 2;
  if (bars) score += 2;
  if (text.live || text.role === 'alert') score += 2;
  if (marked) score += 2;
  if (/error|invalid|danger/i.test(marks)) score += 1;
  if (fresh && submitted) score += 2;
  else if (fresh) score += 1;
  if (form !== undefined && isNear(text, form)) score += submitted && fresh && stayed ? 2 : 0.5;
  if (/success/i.test(marks) && !refuses) score -= 5;
  if (error.fieldMissing.in(text.text) && !refuses) score -= 1;
  // Without words, a mark and news it is only a text.
  if (!refuses && !bars && !(fresh && submitted && stayed)) score -= 3;
  if (form === undefined && !marked && !text.live) score -= 2;
  // Where an application has replaced the form, its own counts of failures are not about the login.
  if (away && !text.live && !isAboutLogin(text.text)) score -= 4;
  if (context.before !== undefined && !fresh && !(refuses || bars)) score -= 3;
  if (text.text.length > 240) score -= 1;
  return score;
}

function isAboutLogin(text: string): boolean {
  return named.password.in(text) || named.username.in(text) || named.code.in(text) || error.locked.in(text);
}

function isNear(text: TextBlock, form: Group): boolean {
  return form.fields.some(({ item }) => {
    if (text.formKey !== undefined && text.formKey === item.el.formKey) return true;
    const { across, down } = gap(text.box, item.el.box);
    return across < 60 && down < 200;
  });
}

function kindOf(text: string, form: Group | undefined, { submitted = [] }: ReadContext): PageErrorKind {
  if (isLockedText(text, submitted.length > 0)) return 'locked';
  if (captchaText.in(text)) return 'captcha';
  const aboutInput = named.password.in(text) || named.username.in(text) || named.email.in(text);
  if (error.siteFault.in(text) && !aboutInput) return 'other';
  if (error.tooMany.in(text) && !/\b(?:code|token)\b/i.test(text)) return 'rate';
  // "Enter the correct name and password" refuses the typed values, unless another field of the form was left out.
  const complete = submitted.includes('password') && form !== undefined && !hasMore(form);
  if (error.fieldMissing.in(text) && !error.refused.in(text) && !complete) return 'other';
  const codeSent = submitted.includes('code') || submitted.includes('totp_code');
  const passwordSent = submitted.includes('password') || submitted.includes('identifier');
  if (codeSent && !passwordSent) return 'code';
  if (codeSent && named.code.in(text)) return 'code';
  if (passwordSent) return 'credentials';
  if (aboutInput) return 'credentials';
  if (named.code.in(text)) return 'code';
  return 'other';
}

/** The form asks for more than a name and a password. */
const hasMore = ({ fields, selects, radios, checkboxes }: Group) =>
  fields.some(({ purpose }) => !ofLogin.has(purpose)) ||
  [...selects, ...radios, ...checkboxes].some(({ el }) => el.required);

const ofLogin = new Set<Purpose>([
  'username',
  'email',
  'phone',
  'customer_number',
  'unknown',
  'password',
  'current_password',
  'new_password',
  'pin',
]);

/** The account is locked now; a text that warns of a lock does not say that. */
export function isLockedText(text: string, afterSubmit: boolean): boolean {
  // Other things than accounts are disabled and blocked too: cookies, scripts, the sign-up.
  const aboutAccount = afterSubmit || named.username.in(text) || named.password.in(text) || error.tooMany.in(text);
  return aboutAccount && error.locked.in(text) && !error.willLock.in(text);
}
