import { joined, ofPurpose, settleCodes, type Field, type Group } from './groups.ts';
import { isClickable, isLoginPath, titles, type Page } from './page.ts';
import { once } from './once.ts';
import { isNumeric } from './purpose.ts';
import { providerOf } from './providers.ts';
import * as action from './words/actions.ts';
import * as named from './words/fields.ts';
import * as text from './words/texts.ts';
import { terms } from './words/demands.ts';

/** The role of a group of fields in a login. */
export type FormKind =
  'login' | 'identifier' | 'code' | 'change_password' | 'sign_up' | 'reset' | 'newsletter' | 'search' | 'other';

export interface Form {
  kind: FormKind;
  group: Group;
  /** How sure that is, to choose among several of a kind. */
  score: number;
  why: string;
}

export function formOf(of: Page, group: Group): Form {
  settleCodes(of, group);
  const form = (kind: FormKind, score: number, why: string): Form => ({
    kind,
    group,
    score: score + place(group),
    why,
  });
  const { fields } = group;
  if (fields.length === 0) return form('other', 0, 'has no field to type into');
  if (fields.every(({ purpose }) => purpose === 'search')) return form('search', 0, 'is a search box');

  const secrets = ofPurpose(group, 'password', 'pin');
  const chosen = ofPurpose(group, 'new_password', 'confirm_password');
  const current = ofPurpose(group, 'current_password');
  if (secrets.length + chosen.length + current.length > 0) {
    return withPassword(of, group, { secrets, chosen, current }, form);
  }
  const codes = ofPurpose(group, 'code');
  const names = ofPurpose(group, 'username', 'email', 'phone', 'customer_number');
  if (codes.length > 0) {
    // A form that asks for an invitation or a discount has no field of a login.
    if (ofPurpose(group, 'personal').length > codes.length) return form('other', 0, 'asks for personal data');
    if (names.length === 0) return form('code', 6, 'asks for a code');
    return form('login', 4, 'asks for an identifier and a code');
  }
  return withoutPassword(of, group, names, form);
}

/** A form in a dialog is in front of those behind it; one below the fold is not what the page is about. */
function place({ fields }: Group): number {
  const first = fields[0]?.item.el;
  if (first === undefined) return 0;
  return (first.inDialog ? 2 : 0) + (first.inViewport ? 1 : 0) - (first.covered ? 1 : 0);
}

function withPassword(
  of: Page,
  group: Group,
  { secrets, chosen, current }: { secrets: Field[]; chosen: Field[]; current: Field[] },
  form: (kind: FormKind, score: number, why: string) => Form,
): Form {
  const label = group.submit?.label ?? '';
  const submitLogsIn = (action.logIn.in(label) || action.letIn.in(label)) && !saysSignUp(label);
  const submitSignsUp = saysSignUp(label);
  const names = ofPurpose(group, 'username', 'email', 'phone', 'customer_number', 'unknown');
  const personal = ofPurpose(group, 'personal');
  const total = secrets.length + chosen.length + current.length;
  const demandsChange = text.changePassword.in(...titles(of), group.over, label);
  const overSignsUp = saysSignUp(group.over) && !action.logIn.in(group.over);

  if (current.length > 0 && total > 1) return form('change_password', 6, 'asks for the current and a new password');
  if (total > 1 && (chosen.length > 0 || secrets.length > 1)) {
    const distinct = secrets.length > 1 && chosen.length === 0 && secrets.some(({ purpose }) => purpose === 'pin');
    if (distinct) return form('login', 6, 'asks for a password and a PIN');
    if (demandsChange && personal.length === 0 && !submitSignsUp)
      return form('change_password', 5, 'asks for a new password twice');
    if (names.length > 0 || personal.length > 0 || submitSignsUp || overSignsUp)
      return form('sign_up', 4, 'asks for a password twice, beside other data');
    return form('change_password', 4, 'asks for a password twice');
  }
  // One password. Sites mark it as new to keep browsers from filling it, so the mark alone does not make a sign-up form.
  if (!submitLogsIn && submitSignsUp) return form('sign_up', 4, `has a button that signs up: "${label}"`);
  if (!submitLogsIn && personal.length > 0 && (overSignsUp || chosen.length > 0 || names.length > 0))
    return form('sign_up', 3, 'asks for personal data');
  if (!submitLogsIn && overSignsUp && !isLoginPath(of.path))
    return form('sign_up', 3, 'stands below a heading that signs up');
  const agrees = group.checkboxes.some(({ says }) => terms.in(says));
  if (!submitLogsIn && chosen.length > 0 && agrees)
    return form('sign_up', 3, 'asks for a new password and for agreement to terms');
  if (chosen.length > 0 && !submitLogsIn && names.length === 0 && demandsChange)
    return form('change_password', 4, 'asks for a new password');
  for (const field of [...chosen, ...current]) field.purpose = 'password';
  const hinted = secrets.some(({ item }) => /current-password/.test(item.el.autocomplete ?? ''));
  const score = 6 + (hinted ? 2 : 0) + (submitLogsIn ? 2 : 0) - (chosen.length > 0 ? 2 : 0) - personal.length * 2;
  return form('login', score, names.length > 0 ? 'asks for an identifier and a password' : 'asks for a password');
}

function saysSignUp(label: string): boolean {
  return action.signUp.in(label);
}

/** Fields without a password: the first step of a login, or one of the many other forms that pages have. */
function withoutPassword(
  of: Page,
  group: Group,
  names: Field[],
  form: (kind: FormKind, score: number, why: string) => Form,
): Form {
  const label = group.submit?.label ?? '';
  const submitLogsIn = action.logIn.in(label) || (action.letIn.in(label) && isLoginPath(of.path));
  const unknown = ofPurpose(group, 'unknown');
  const extra = ofPurpose(group, 'server', 'tenant', 'database', 'security_answer', 'captcha');
  const personal = ofPurpose(group, 'personal');
  const near = `${group.over} · ${label} · ${joined(group.fields.map(({ item }) => item.says))}`;
  const isReset = action.forgot.in(label, group.over) || (action.forgot.in(...titles(of)) && !submitLogsIn);
  if (isReset && !submitLogsIn) return form('reset', 1, 'sends a new password');
  if (named.newsletter.in(near, group.texts) && !submitLogsIn && !named.username.in(near))
    return form('newsletter', 1, 'subscribes to a newsletter');
  if (personal.length > 0) return form('other', 0, 'asks for personal data');
  const signsUp = action.signUp.in(label) && !submitLogsIn && !isShared(label);
  if (signsUp) return form('sign_up', 2, `has a button that signs up: "${label}"`);
  const candidates = [...names, ...unknown, ...extra];
  if (candidates.length === 0 || group.fields.length > 3) return form('other', 0, 'has nothing that a login asks for');

  const hints = group.fields.map(({ item }) => item.el.autocomplete ?? '').join(' ');
  const heads = [...titles(of), group.over];
  let score = 0;
  if (/username|webauthn/.test(hints)) score += 4;
  if (/email|tel/.test(hints)) score += 1;
  if (names.some(({ purpose }) => purpose === 'username' || purpose === 'customer_number')) score += 2.5;
  if (names.some(({ purpose }) => purpose === 'email' || purpose === 'phone')) score += 1.5;
  if (extra.length > 0) score += 1;
  if (submitLogsIn) score += 3;
  else if (action.goOn.in(label)) score += 1.5;
  if (heads.some((head) => action.logIn.in(head) && !action.logOut.in(head))) score += 2;
  if (isLoginPath(of.path)) score += 2;
  const around = surroundings(of);
  if (around.providers) score += 1;
  if (around.forgot) score += 1.5;
  if (group.checkboxes.some(({ says }) => named.remember.in(says))) score += 2;
  if (around.links <= 12) score += 1;
  else if (around.links > 40) score -= 1.5;
  score -= 1.5 * Math.max(0, unknown.length - (names.length > 0 ? 0 : 1));
  if (group.submit === undefined) score -= 1;
  if (group.fields.every(({ item }) => isNumeric(item)) && names.length === 0) score -= 2;
  if (heads.some((head) => action.signUp.in(head) && !action.logIn.in(head)) && !submitLogsIn) score -= 2;
  return score >= 4
    ? form('identifier', Math.min(score, 9) - 4, 'asks for an identifier first')
    : form('other', 0, `does not look enough like the first step of a login (${score})`);
}

/** What the page has besides its forms. */
const surroundings = once((of: Page) => ({
  providers: of.items.some((item) => providerOf(item) !== undefined),
  forgot: of.items.some((item) => isClickable(item) && action.forgot.in(item.label)),
  links: of.items.filter(({ control }) => control === 'link').length,
}));

/** One button for both: "Sign up or log in". */
function isShared(label: string): boolean {
  return action.logIn.in(label);
}
