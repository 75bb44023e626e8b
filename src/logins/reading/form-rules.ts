import { readFields } from './fields.ts';
import { ofPurpose } from './groups.ts';
import { isSparse, mainTexts, skipItem, step, acceptItem } from './obstacles.ts';
import { isClickable } from './page.ts';
import { blankSign, captchaSign, maintenanceSign, shownSecret } from './signs.ts';
import * as named from './words/fields.ts';
import { enrolApp } from './words/texts.ts';
import { isLockedText } from './errors.ts';
import { best, codeParts, loginParts, rememberPart, submitPart, type Rule } from './view.ts';

/** Pages that are blank, barred, or ask for something to be typed. */
export const formRules: Rule[] = [
  {
    name: 'basic',
    find: ({ page: { snapshot } }) =>
      snapshot.basicAuth === undefined
        ? undefined
        : { kind: 'basic', why: `${snapshot.basicAuth.origin} asks for HTTP Basic credentials` },
  },
  {
    name: 'blank',
    find({ page }) {
      const why = blankSign(page);
      return why === undefined ? undefined : { kind: 'blank', why };
    },
  },
  {
    name: 'enrol_totp',
    find(of) {
      const { page, code, out, forms } = of;
      if (forms.some(({ kind, group }) => kind === 'login' && ofPurpose(group, 'password').length > 0))
        return undefined;
      const texts = mainTexts(page);
      const secret = shownSecret(page);
      const isSetUp = enrolApp.in(...texts) && (named.authenticatorApp.in(...texts) || named.secondFactor.in(...texts));
      const scans = enrolApp.count(...texts) >= 2;
      // A code is asked for on every login; only with a secret or a picture to scan beside it is it an enrolment.
      if (!(isSetUp && (secret !== undefined || (scans && code !== undefined)))) return undefined;
      if (out !== undefined && !isSparse(page)) return undefined;
      const skip = skipItem(page);
      const why =
        secret === undefined
          ? 'the page shows a code to scan for an authenticator app'
          : 'the page shows a secret for an authenticator app';
      const parts = code === undefined ? submitOnly(page) : codeParts(of, code);
      const fields = (parts.fields ?? []).map((field) =>
        field.type === 'code' ? { ...field, type: 'totp_code' as const, legacyType: 'totp' as const } : field,
      );
      const shown = secret === undefined ? {} : { totpSecret: secret };
      return skip === undefined
        ? { kind: 'enrol_totp', why, ...parts, fields, ...shown }
        : { kind: 'interstitial', why: `${why}, and can be skipped`, next: [step(skip, 'skip')], ...shown };
    },
  },
  {
    name: 'change_password',
    find({ page, forms, out, login }) {
      const form = best(forms, 'change_password');
      if (form === undefined || (login !== undefined && login.score > form.score)) return undefined;
      // The settings page of an account that is logged in has such a form too.
      if (out !== undefined && !isSparse(page)) return undefined;
      const skip = skipItem(page);
      if (skip !== undefined) {
        return {
          kind: 'interstitial',
          why: 'a new password is asked for, and can be skipped',
          next: [step(skip, 'skip')],
        };
      }
      return {
        kind: 'change_password',
        why: form.why,
        fields: readFields(page, form.group),
        ...submitPart(form.group),
      };
    },
  },
  {
    name: 'captcha',
    find(of) {
      const { page, login, code } = of;
      const form = login ?? code;
      const why = captchaSign(page, form);
      if (why === undefined || (of.out !== undefined && form === undefined)) return undefined;
      if (form === undefined) return { kind: 'captcha', why };
      return { kind: 'captcha', why, ...(form === login ? loginParts(of, form) : codeParts(of, form)) };
    },
  },
  {
    name: 'locked',
    find(of) {
      const { page, error, login, code, out, context } = of;
      if (out !== undefined && !isSparse(page)) return undefined;
      if (
        error?.kind === 'locked' &&
        (error.fresh || context.before === undefined || (context.submitted?.length ?? 0) > 0)
      ) {
        return { kind: 'locked', why: 'the site says that the account is locked', externalMessage: error.text };
      }
      const submitted = (context.submitted?.length ?? 0) > 0;
      const head =
        page.headings.find((heading) => isLockedText(heading, submitted)) ??
        (isLockedText(page.snapshot.title, submitted) ? page.snapshot.title : undefined);
      if (head === undefined || login !== undefined || code !== undefined) return undefined;
      return { kind: 'locked', why: `the page is about a locked account: "${head}"`, externalMessage: head };
    },
  },
  {
    name: 'code',
    find(of) {
      const { code, login, context, out, page } = of;
      if (code === undefined) return undefined;
      if (out !== undefined && !isSparse(page)) return undefined;
      const hasPassword = login !== undefined && ofPurpose(login.group, 'password', 'pin').length > 0;
      const front = code.group.fields[0]?.item.el;
      const passwordSent = context.submitted?.includes('password') === true;
      const first = login === undefined || !hasPassword || front?.inDialog === true || passwordSent;
      return first ? { kind: 'code', why: code.why, ...codeParts(of, code) } : undefined;
    },
  },
  {
    name: 'login',
    find(of) {
      const { login, out, page } = of;
      if (login === undefined) return undefined;
      // Applications ask for a password to confirm something; a page with a way to log out is for a logged-in user all the same.
      if (out !== undefined && page.items.includes(out) && !isSparse(page) && login.kind === 'identifier')
        return undefined;
      return { kind: 'login', why: login.why, ...loginParts(of, login) };
    },
  },
  {
    name: 'maintenance',
    find({ page, out }) {
      const why = out === undefined ? maintenanceSign(page) : undefined;
      return why === undefined ? undefined : { kind: 'maintenance', why };
    },
  },
];

function submitOnly(page: Parameters<typeof acceptItem>[0]) {
  const item = acceptItem(page) ?? page.items.find(isClickable);
  return {
    fields: [],
    ...(item === undefined
      ? {}
      : { submit: { ref: item.el.ref, label: item.label, selectors: [...item.el.selectors] } }),
    ...rememberPart({ fields: [], selects: [], radios: [], checkboxes: [], submit: undefined, over: '', texts: '' }),
  };
}
