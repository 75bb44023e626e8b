import { gap, isClickable, titles, type Item, type Page } from './page.ts';
import type { Step, StepReason } from './types.ts';
import * as action from './words/actions.ts';
import { terms } from './words/demands.ts';
import { cookies } from './words/texts.ts';
import * as way from './words/ways.ts';

export function step(item: Item, why: StepReason, act: Step['act'] = 'click'): Step {
  return { ref: item.el.ref, why, label: item.label, selectors: [...item.el.selectors], act };
}

const consentMark =
  /cookie|consent|gdpr|\bcmp\b|onetrust|didomi|usercentrics|cookiebot|trustarc|quantcast|klaro|tarteaucitron|ccpa|privacy-?(?:banner|center|manager)/i;
const cross = /^[×✕✖⨯✗╳xX]$/u;

/** A link with an address that is not a place of the same page. */
function leadsAway({ el, frame }: Item): boolean {
  if (el.href === undefined || /^javascript:|#$/.test(el.href)) return false;
  return el.href.split('#')[0] !== frame.url.split('#')[0] || !el.href.includes('#');
}

/** Buttons of a cookie banner, the least consent first. */
export function cookieSteps(of: Page): Item[] {
  const about = of.texts.filter((text) => cookies.in(text.text) && text.text.length > 25);
  const usable = of.items.filter((item) => {
    const { label } = item;
    if (!isClickable(item) || label.length > 60 || (item.control === 'link' && leadsAway(item))) return false;
    if (!way.reject.in(label) && !way.accept.in(label) && !way.close.in(label) && !cross.test(label)) return false;
    const marked = consentMark.test(`${item.el.classes} ${item.el.id ?? ''} ${item.frame.main ? '' : item.frame.url}`);
    const near =
      cookies.in(item.el.near, item.label) ||
      about.some((text) => {
        const { across, down } = gap(text.box, item.el.box);
        return across < 300 && down < 160 && text.inDialog === item.el.inDialog;
      });
    return marked || near;
  });
  const rejecting = usable.filter(({ label }) => way.reject.in(label));
  const accepting = usable.filter(({ label }) => way.accept.in(label) && !way.reject.in(label));
  const closing = usable.filter(({ label }) => way.close.in(label) || cross.test(label));
  return [...new Set([...rejecting, ...accepting, ...closing])];
}

/**
 * What has to be clicked away before these can be used. They count as blocked when another element lies on top of them, or
 * when a dialog is open and they are not in it.
 */
export function obstacleSteps(of: Page, needed: Item[]): Step[] {
  const first = needed[0];
  const covered = needed.some(({ el }) => el.covered === true);
  const dialog = of.items.filter(({ el }) => el.inDialog);
  const behind = first !== undefined && !first.el.inDialog && dialog.length > 0;
  if (needed.length > 0 && !covered && !behind) return [];
  const inWay = cookieSteps(of);
  const front = of.items.filter(
    (item) =>
      isClickable(item) &&
      item.el.covered !== true &&
      (covered && dialog.length === 0 ? !needed.includes(item) : item.el.inDialog),
  );
  const closing = front.filter(isCloser);
  const going = inWay.filter(({ el }) => el.covered !== true && (covered || el.inDialog));
  return [...new Set([...going, ...closing])].slice(0, 4).map((item) => step(item, 'dismiss'));
}

export function isCloser(item: Item): boolean {
  const { label, el } = item;
  if (label.length > 60) return false;
  // A link to another page leaves this one; it closes nothing.
  if (item.control === 'link' && leadsAway(item)) return way.skip.in(label) && label.length <= 30;
  if (cross.test(label.trim())) return true;
  if (way.skip.in(label) || way.reject.in(label) || way.close.in(label)) return true;
  return /(?:^|[\s_-])(?:close|dismiss)(?:$|[\s_-])/i.test(`${el.classes} ${el.id ?? ''} ${el.title ?? ''}`);
}

/** A button that puts off what the page wants. */
export function skipItem(of: Page): Item | undefined {
  const found = of.items.filter((item) => isClickable(item) && item.label.length <= 60 && way.skip.in(item.label));
  // "Skip to main content" is for keyboards.
  return found.find(
    ({ label, el }) =>
      !/content|inhalt|contenu|contenido|main|hauptinhalt/i.test(label) && el.href?.startsWith('#') !== true,
  );
}

/** A box for agreement that is not ticked. */
export function openTerms(of: Page): Item | undefined {
  return of.items.find(
    ({ control, el, says }) => control === 'checkbox' && el.checked !== true && (terms.in(says) || way.accept.in(says)),
  );
}

/** The button that agrees, allows or continues. */
export function acceptItem(of: Page): Item | undefined {
  const clickable = of.items.filter((item) => isClickable(item) && item.label.length <= 60 && item.control !== 'tab');
  const positive = clickable.filter(
    ({ label }) =>
      (way.accept.in(label) || action.goOn.in(label)) &&
      !way.reject.in(label) &&
      !action.goBack.in(label) &&
      !action.logOut.in(label),
  );
  const byRank = (item: Item) =>
    (way.accept.in(item.label) ? 2 : 0) +
    (item.control === 'button' ? 2 : 0) +
    (item.el.type === 'submit' ? 1 : 0) -
    (item.el.href !== undefined ? 1 : 0);
  return positive.sort((a, b) => byRank(b) - byRank(a))[0];
}

export function yesItem(of: Page): Item | undefined {
  const clickable = of.items.filter((item) => isClickable(item) && item.label.length <= 60);
  const plainYes = clickable.find(({ label }) => way.yes.in(label) && !way.no.in(label) && !way.reject.in(label));
  return plainYes ?? acceptItem(of);
}

/** Few things to click: a page that is about one question. */
export function isSparse(of: Page): boolean {
  return of.items.filter(isClickable).length <= 14;
}

/** Text that a page of one question is about. */
export function mainTexts(of: Page): string[] {
  return [...titles(of), ...of.texts.map(({ text }) => text).filter((text) => text.length <= 300)].slice(0, 60);
}
