import { accountOptions, drawnOver, factorOptions, withIds, type Option } from './choices.ts';
import { acceptItem, isSparse, mainTexts, openTerms, skipItem, step, yesItem } from './obstacles.ts';
import { isClickable, titles, type Item } from './page.ts';
import { submitOf } from './submit.ts';
import { unique, type View, type Rule } from './view.ts';
import * as action from './words/actions.ts';
import * as demand from './words/demands.ts';
import * as named from './words/fields.ts';
import * as text from './words/texts.ts';
import * as way from './words/ways.ts';

/** Pages of a login that ask a person for something other than typing. */
export const demandRules: Rule[] = [
  {
    name: 'second factor',
    find(of) {
      const { page, context } = of;
      if (!isAsking(of)) return undefined;
      const options = factorOptions(page, false).filter(({ item }) => !way.skip.in(item.label));
      const real = options.filter(({ mfaType }) => mfaType !== 'switch');
      const submitted =
        context.submitted?.some((part) => part === 'password' || part === 'identifier' || part === 'choice') === true;
      const named2 = named.secondFactor.in(...titles(page)) || asksToVerify(of);
      const hasTarget = real.some(({ target }) => target !== undefined);
      if (!(submitted || named2) || real.length === 0 || (real.length === 1 && !hasTarget)) return undefined;
      return {
        kind: 'choice',
        why: `${real.length} ways to prove the identity can be chosen`,
        choices: withIds(unique(options)),
        ...chooseSubmit(of, options),
      };
    },
  },
  {
    name: 'account picker',
    find({ page, out }) {
      if (out !== undefined && !isSparse(page)) return undefined;
      const options = accountOptions(page);
      return options.length === 0
        ? undefined
        : { kind: 'choice', why: `${options.length} accounts can be chosen`, choices: withIds(unique(options)) };
    },
  },
  {
    name: 'stay signed in',
    find({ page }) {
      const question =
        titles(page).find((title) => demand.staySignedIn.in(title)) ?? shortText(page, demand.staySignedIn);
      const yes = question === undefined || !isSparse(page) ? undefined : yesItem(page);
      return yes === undefined
        ? undefined
        : {
            kind: 'interstitial',
            why: `the site asks whether to stay signed in: "${question}"`,
            next: [step(yes, 'stay_signed_in')],
          };
    },
  },
  {
    name: 'external',
    find(of) {
      const { page } = of;
      if (!isAsking(of)) return undefined;
      const labels = new Set(page.items.map(({ label }) => label));
      const texts = mainTexts(page).filter((one) => !labels.has(one));
      const notice =
        of.isLoginPage && isSparse(page)
          ? texts.find((one) => text.actElsewhere.in(one) && isSentence(one) && !isPromotion(one))
          : undefined;
      const wasSent = texts.find((one) => text.sent.in(one) && (named.email.in(one) || named.phone.in(one)));
      const message = wasSent ?? notice;
      if (message === undefined) return undefined;
      // Something that can be put off, or allowed here, is not waited for elsewhere.
      if (skipItem(page) !== undefined && wasSent === undefined && !demand.push.in(message)) return undefined;
      if (demand.consent.in(...texts) && wasSent === undefined && acceptItem(page) !== undefined) return undefined;
      const choices = factorOptions(page, true);
      return {
        kind: 'external',
        why: 'the page waits for something outside of it',
        externalMessage: sentence(texts, message),
        choices: withIds(unique(choices)),
      };
    },
  },
  {
    name: 'terms',
    find(of) {
      const { page, out, forms } = of;
      // A form that asks for more than agreement is another form: a sign-up, mostly.
      const asks = forms.some(
        ({ kind, group }) => kind !== 'search' && kind !== 'newsletter' && group.fields.length > 0,
      );
      if (asks || (out !== undefined && !isSparse(page))) return undefined;
      const texts = mainTexts(page);
      const accept = acceptItem(page);
      const box = openTerms(page);
      if (accept === undefined || !isSparse(page)) return undefined;
      const isConsent =
        demand.consent.in(...texts) && (way.accept.in(accept.label) || action.goOn.in(accept.label)) && hasRefusal(of);
      const isTerms = titles(page).some((title) => demand.terms.in(title)) || box !== undefined;
      if (!isConsent && !isTerms) return undefined;
      return {
        kind: 'interstitial',
        why: isConsent ? 'an application asks for consent' : 'terms have to be accepted',
        next: [...(box === undefined ? [] : [step(box, 'accept', 'check')]), step(accept, 'accept')],
      };
    },
  },
  {
    name: 'skip',
    find(of) {
      const { page, out, context } = of;
      const skip = skipItem(page);
      if (skip === undefined) return undefined;
      if (out !== undefined && !isSparse(page)) return undefined;
      // A landing page has overlays that say "later" too; there the login comes first, and the overlay is its obstacle.
      const afterLogin = (context.submitted?.length ?? 0) > 0 || out !== undefined;
      const wanted = mainTexts(page).some((one) => text.setUp.in(one) || demand.passkey.in(one));
      if (!afterLogin && !(wanted && isSparse(page) && !skip.el.inDialog)) return undefined;
      return { kind: 'interstitial', why: `the page can be skipped: "${skip.label}"`, next: [step(skip, 'skip')] };
    },
  },
];

/** The page may ask for something: it belongs to a login, and nothing on it is for logged-in users. */
function isAsking({ page, out, isLoginPage, context }: View): boolean {
  const submitted = (context.submitted?.length ?? 0) > 0;
  if (out !== undefined && !isSparse(page)) return false;
  return isLoginPage || submitted || isSparse(page);
}

function asksToVerify({ page }: View): boolean {
  return titles(page).some(
    (title) =>
      action.anotherWay.in(title) || /verif|identit|confirm|bestätig|подтвержд|確認|验证|weryfik|doğrul/i.test(title),
  );
}

function shortText(page: View['page'], words: { in(...texts: string[]): boolean }): string | undefined {
  const labels = new Set(page.items.filter(({ control }) => control === 'checkbox').map(({ label }) => label));
  return page.texts.find(
    ({ text: one, label }) => one.length <= 120 && label !== true && !labels.has(one) && words.in(one),
  )?.text;
}

/** A single word such as "Notifications" names a part of an application. */
function isSentence(one: string): boolean {
  return (
    one.trim().split(/\s+/).length >= 3 || (/[^\p{Script=Latin}\p{Script=Cyrillic}\s]{6}/u.test(one) && one.length >= 8)
  );
}

/** Advice for the future is no demand: "next time, use your phone". */
function isPromotion(one: string): boolean {
  return text.installApp.in(one) || named.newsletter.in(one) || text.cookies.in(one);
}

/** The message with its heading, as a person reads it. */
function sentence(texts: string[], message: string): string {
  const at = texts.indexOf(message);
  const before = at > 1 ? texts[at - 1] : undefined;
  const whole =
    before !== undefined && before !== message && before.length <= 80 && text.actElsewhere.in(before)
      ? `${before} ${message}`
      : message;
  return whole.slice(0, 300);
}

function hasRefusal({ page }: View): boolean {
  return page.items.some(
    (item) => isClickable(item) && (way.reject.in(item.label) || action.goBack.in(item.label) || way.no.in(item.label)),
  );
}

/** Radio buttons are sent by a button; links and buttons send themselves. */
function chooseSubmit({ page }: View, options: Option[]) {
  const radios: Item[] = options.map(({ item }) => item).filter(({ control }) => control === 'radio');
  if (radios.length === 0) return {};
  const submit = submitOf(page, radios) ?? submitOf(page, drawnOver(page)) ?? acceptItem(page);
  return submit === undefined
    ? {}
    : { submit: { ref: submit.el.ref, label: submit.label, selectors: [...submit.el.selectors] } };
}
