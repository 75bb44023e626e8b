import { methodOptions, peerOptions, ssoOptions, withIds, type Option } from './choices.ts';
import { entries, hiddenEntries, menus } from './entry.ts';
import { readFields } from './fields.ts';
import { acceptItem, cookieSteps, isCloser, isSparse, obstacleSteps, step } from './obstacles.ts';
import { isClickable, isLoginPath } from './page.ts';
import { submitOf } from './submit.ts';
import type { Step } from './types.ts';
import { best, submitPart, unique, type View, type Rule } from './view.ts';
import * as demand from './words/demands.ts';
import * as way from './words/ways.ts';

/** Pages without a demand: the kind of page, and the way to the login. */
export const placeRules: Rule[] = [
  {
    name: 'signed in',
    find({ page, out }) {
      if (out === undefined) return undefined;
      const overlays = page.items.filter((item) => item.el.inDialog && isClickable(item) && isCloser(item));
      return {
        kind: 'signed_in',
        why: `there is a way to log out: "${out.label}"`,
        wayOut: out.label,
        next: overlays.slice(0, 2).map((item) => step(item, 'dismiss')),
      };
    },
  },
  {
    name: 'ways to log in',
    find(of) {
      const { page, context } = of;
      const sso = ssoOptions(page, undefined);
      const methods = methodOptions(page, undefined);
      const options = unique([...sso, ...methods]);
      const offered = new Set(options.map(({ item }) => item));
      const leading = entries(page, context.domain).filter((item) => !offered.has(item));
      if (options.length === 0) return undefined;
      if (leading.length > 0 && (!of.isLoginPage || best(of.forms, 'sign_up') !== undefined)) return undefined;
      const onlyPasskeys = options.every(({ item }) => demand.passkey.in(item.label));
      if (onlyPasskeys)
        return { kind: 'passkey', why: 'a passkey is the only way to log in', choices: withIds(options) };
      const typed = methods.filter(({ mfaType }) => mfaType === 'password' || mfaType === 'email');
      const preferred = typed.find(({ mfaType }) => mfaType === 'password') ?? typed[0];
      const needed = options.map(({ item }) => item);
      return {
        kind: 'choice',
        why: `${options.length} ways to log in can be chosen, and none has a field yet`,
        choices: withIds(options),
        next: [
          ...obstacleSteps(page, needed.slice(0, 3)),
          ...(preferred === undefined ? [] : [step(preferred.item, 'entry')]),
        ],
      };
    },
  },
  { name: 'ways for others', find: choosePeople },
  {
    name: 'entry',
    find({ page, context, forms }) {
      const found = entries(page, context.domain);
      const [first] = found;
      if (first === undefined) return undefined;
      const besideForm = best(forms, 'sign_up', 'reset') !== undefined;
      const leads = found.slice(0, 3).map((item): Step => step(item, item.control === 'tab' ? 'tab' : 'entry'));
      return {
        kind: 'entry',
        why: besideForm
          ? `beside another form "${first.label}" leads to the login`
          : `"${first.label}" leads to the login`,
        next: [...obstacleSteps(page, [first]), ...leads],
      };
    },
  },
  { name: 'choice before the form', find: chooseBefore },
  {
    name: 'passkey',
    find({ page, isLoginPage }) {
      const heading = page.headings
        .concat(page.texts.map(({ text }) => text))
        .find((text) => demand.passkey.in(text) && text.length <= 200);
      return heading === undefined || !isLoginPage || !isSparse(page)
        ? undefined
        : { kind: 'passkey', why: `the page is about a passkey: "${heading}"` };
    },
  },
  {
    name: 'obstacle',
    find({ page }) {
      const closing = [
        ...cookieSteps(page),
        ...page.items.filter((item) => isClickable(item) && item.el.inDialog && isCloser(item)),
      ];
      const steps = [...new Set(closing)]
        .slice(0, 4)
        .map((item) => step(item, way.skip.in(item.label) ? 'skip' : 'dismiss'));
      return steps.length === 0
        ? undefined
        : { kind: 'interstitial', why: 'a banner or overlay hides what is behind it', next: steps };
    },
  },
  {
    name: 'only way on',
    find({ page, context, forms }) {
      if (
        (context.submitted?.length ?? 0) === 0 ||
        !isSparse(page) ||
        forms.some(({ group }) => group.fields.length > 0)
      )
        return undefined;
      const accept = acceptItem(page);
      return accept === undefined
        ? undefined
        : { kind: 'interstitial', why: `one button leads on: "${accept.label}"`, next: [step(accept, 'accept')] };
    },
  },
  {
    name: 'form gone',
    find({ page, context, forms, error }) {
      const before = context.before;
      if (before === undefined || (context.submitted?.length ?? 0) === 0) return undefined;
      const hasSecret = forms.some(
        ({ kind }) => kind === 'login' || kind === 'identifier' || kind === 'code' || kind === 'change_password',
      );
      if (hasSecret || error?.fresh === true || isLoginPath(page.path) || (page.snapshot.httpStatus ?? 200) >= 400)
        return undefined;
      const clickable = page.items.filter(isClickable).length;
      return clickable < 4
        ? undefined
        : { kind: 'signed_in', why: 'the login form is gone and the page has content of its own' };
    },
  },
  {
    name: 'menu',
    find({ page, context }) {
      const closed = menus(page);
      const hidden = hiddenEntries(page, context.domain);
      const [menu] = closed;
      if (menu === undefined) return undefined;
      const why =
        hidden.length > 0
          ? `a closed menu holds "${hidden[0]?.label}"`
          : `a closed menu may lead to the login: "${menu.label}"`;
      return {
        kind: hidden.length > 0 ? 'entry' : 'unknown',
        why,
        next: [...obstacleSteps(page, [menu]), ...closed.slice(0, 3).map((item) => step(item, 'menu'))],
      };
    },
  },
];

/** Ways in for several kinds of people, one beside the other: "Guest access", "Staff account". Only the person knows which is right. */
function choosePeople({ page, context, forms, isLoginPage }: View): ReturnType<Rule['find']> {
  if (context.submitted?.includes('password') === true || !isSparse(page)) return undefined;
  if (forms.some(({ kind, group }) => kind !== 'search' && kind !== 'newsletter' && group.fields.length > 0))
    return undefined;
  const all = peerOptions(page);
  const ways = all.filter(({ item }) => way.audience.in(item.label));
  const labels = ways.map(({ item }) => item.label);
  if (new Set(labels).size < 2 || 2 * ways.length < all.length) return undefined;
  // The links of a shop to its pages for companies and for others are no ways in.
  const leadIn = labels.some((label) => way.wayIn.in(label) || way.account.in(label));
  if (!isLoginPage && !leadIn) return undefined;
  const items = ways.map(({ item }) => item);
  return {
    kind: 'choice',
    why: `${ways.length} ways in are for different people`,
    choices: withIds(ways),
    next: obstacleSteps(page, items),
  };
}

/** A page of a login that wants to know first where, or as what: a select, radio buttons, or things of one make in a row. */
function chooseBefore({ page, isLoginPage, forms, context }: View): ReturnType<Rule['find']> {
  if (!isLoginPage) return undefined;
  // After the password it is the application that has things in a row, unless the address is still one of the login.
  if (context.submitted?.includes('password') === true && !isLoginPath(page.path)) return undefined;
  const choosing = forms.find(
    ({ group }) => group.fields.length === 0 && (group.selects.length > 0 || group.radios.length > 1),
  );
  if (choosing !== undefined) {
    const fields = readFields(page, choosing.group);
    if (fields.some(({ options }) => options?.some(({ ref }) => ref !== undefined) !== true)) {
      return {
        kind: 'login',
        why: 'a place to log in at has to be chosen first',
        fields,
        ...submitPart(choosing.group),
      };
    }
    if (choosing.group.radios.length > 1) {
      const options: Option[] = choosing.group.radios.map((item) => ({ item, type: 'auth_method' }));
      const submit = submitOf(page, choosing.group.radios);
      return {
        kind: 'choice',
        why: 'a kind of account has to be chosen first',
        choices: withIds(options),
        ...(submit === undefined
          ? {}
          : { submit: { ref: submit.el.ref, label: submit.label, selectors: [...submit.el.selectors] } }),
      };
    }
  }
  const typed = forms.some(({ kind, group }) => kind !== 'search' && kind !== 'newsletter' && group.fields.length > 0);
  const peers = typed ? [] : peerOptions(page);
  if (peers.length < 2 || !isSparse(page)) return undefined;
  return {
    kind: 'choice',
    why: `${peers.length} things of one make can be chosen`,
    choices: withIds(peers),
    next: obstacleSteps(
      page,
      peers.map(({ item }) => item),
    ),
  };
}
