import { factorOptions, methodOptions, ssoOptions, withIds, type Option } from './choices.ts';
import { errorOf } from './errors.ts';
import { readFields, rememberOf } from './fields.ts';
import { formOf, type Form, type FormKind } from './forms.ts';
import { groups, ofPurpose, type Group } from './groups.ts';
import { obstacleSteps, openTerms, step } from './obstacles.ts';
import { isLoginPath, page, titles, type Item, type Page } from './page.ts';
import type { Snapshot } from './snapshot.ts';
import type { PageError, ReadContext, Reading, ReadingKind, Step } from './types.ts';
import * as action from './words/actions.ts';
import { wayOut } from './entry.ts';

/** A page with everything that several rules ask for. */
export interface View {
  page: Page;
  context: ReadContext;
  forms: Form[];
  /** The form that asks for identifier or password, if there is one. */
  login: Form | undefined;
  code: Form | undefined;
  error: PageError | undefined;
  /** The way to log out, which only logged-in users are offered. */
  out: Item | undefined;
  /** The page is part of a login: by the last submit, by its address or by its head. */
  isLoginPage: boolean;
}

/** What a rule finds: a kind with the reason for it, and the parts of the reading that it decides. */
type Finding = Partial<Omit<Reading, 'kind' | 'evidence'>> & { kind: ReadingKind; why: string };

/** One rule of the table in read.ts. */
export interface Rule {
  name: string;
  find(of: View): Finding | undefined;
}

export function view(snapshot: Snapshot, context: ReadContext): View {
  const prepared = page(snapshot);
  const forms = groups(prepared).map((group) => formOf(prepared, group));
  const login = best(forms, 'login', 'identifier');
  const code = best(forms, 'code');
  const submitted = (context.submitted?.length ?? 0) > 0;
  return {
    page: prepared,
    context,
    forms,
    login,
    code,
    error: errorOf(prepared, (login ?? code)?.group, context),
    out: wayOut(prepared),
    isLoginPage:
      submitted ||
      isLoginPath(prepared.path) ||
      titles(prepared).some((title) => action.logIn.in(title) && !action.logOut.in(title)),
  };
}

export function best(forms: Form[], ...kinds: FormKind[]): Form | undefined {
  return forms.filter(({ kind }) => kinds.includes(kind)).sort((a, b) => b.score - a.score)[0];
}

export const submitPart = ({ submit }: Group): Pick<Reading, 'submit'> =>
  submit ? { submit: { ref: submit.el.ref, label: submit.label, selectors: [...submit.el.selectors] } } : {};

export function rememberPart(group: Group): Pick<Reading, 'remember'> {
  const remember = rememberOf(group);
  return remember === undefined ? {} : { remember };
}

/** The parts of a reading that a login form gives. */
export function loginParts(
  { page: of }: View,
  { group }: Form,
): Pick<Reading, 'fields' | 'choices' | 'submit' | 'remember' | 'next'> {
  const fields = readFields(of, group);
  const methods = methodOptions(of, group);
  const options = unique([...ssoOptions(of, group), ...methods]);
  const needed = [...group.fields.map(({ item }) => item), ...(group.submit === undefined ? [] : [group.submit])];
  return {
    fields,
    choices: withIds(options),
    ...submitPart(group),
    ...rememberPart(group),
    next: [...obstacleSteps(of, needed), ...termsSteps(of, group), ...passwordTab(group, methods)],
  };
}

/** Some sites log in only after their terms have been ticked. */
function termsSteps(of: Page, group: Group): Step[] {
  const box = openTerms({ ...of, items: group.checkboxes });
  return box === undefined ? [] : [step(box, 'accept', 'check')];
}

/** A form for a code or a link by mail, beside which the site offers the password. */
function passwordTab(group: Group, methods: Option[]): Step[] {
  if (ofPurpose(group, 'password', 'pin').length > 0) return [];
  const byPassword = methods.find(({ mfaType }) => mfaType === 'password');
  const sendsCode =
    ofPurpose(group, 'code').length > 0 ||
    action.sendCode.in(group.submit?.label) ||
    /link/i.test(group.submit?.label ?? '');
  const isTab = byPassword?.item.control === 'tab';
  return byPassword !== undefined && (sendsCode || isTab) ? [step(byPassword.item, 'tab')] : [];
}

export function codeParts(
  { page: of }: View,
  { group }: Form,
): Pick<Reading, 'fields' | 'choices' | 'submit' | 'remember' | 'next'> {
  const needed = group.fields.map(({ item }) => item);
  const others = factorOptions(of, true).filter(({ item }) => item !== group.submit);
  return {
    fields: readFields(of, group),
    choices: withIds(unique(others)),
    ...submitPart(group),
    ...rememberPart(group),
    next: obstacleSteps(of, needed),
  };
}

export function unique(options: Option[]): Option[] {
  const items = new Set<Item>();
  return options.filter(({ item }) => !items.has(item) && items.add(item));
}
