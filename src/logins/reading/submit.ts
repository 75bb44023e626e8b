import { once } from './once.ts';
import { gap, isClickable, type Item, type Page } from './page.ts';
import { providerOf } from './providers.ts';
import * as action from './words/actions.ts';
import { passkey } from './words/demands.ts';
import * as named from './words/fields.ts';
import * as way from './words/ways.ts';

/** The button that sends the fields, or undefined: then Enter in the last of them does. */
export function submitOf(of: Page, fields: Item[]): Item | undefined {
  const last = fields.at(-1);
  const first = fields[0];
  if (last === undefined || first === undefined) return undefined;
  let best: { item: Item; score: number } | undefined;
  for (const item of of.inFrame.get(last.frame) ?? []) {
    const score = isClickable(item) ? scoreOf(item, first, last) : 0;
    if (score > 0 && (best === undefined || score > best.score)) best = { item, score };
  }
  return best?.item;
}

function scoreOf(item: Item, first: Item, last: Item): number {
  const { el } = item;
  if (el.inDialog !== last.el.inDialog || item.control === 'tab') return 0;
  const sameForm = el.formKey !== undefined && el.formKey === last.el.formKey;
  const { across, down } = gap(el.box, last.el.box);
  const isNear = down < 320 && across < 320;
  if (!sameForm && (!isNear || el.formKey !== undefined)) return 0;
  const own = ownScore(item);
  let score = (sameForm ? 3 : 1) + own.score;
  if (item.order > last.order) score += 2;
  else if (item.order < first.order) score -= 4;
  if (down > 160) score -= 1;
  if (own.signsUp) score -= sameForm || item.control === 'button' ? 3 : 8;
  return score;
}

/** The score of the button itself, without the fields. */
const ownScore = once((item: Item): { score: number; signsUp: boolean } => {
  const { el, label } = item;
  let score = 0;
  if (item.control === 'button') score += 2;
  if (el.type === 'submit' || el.type === 'image') score += 3;
  if (action.logIn.in(label)) score += 4;
  else if (action.letIn.in(label)) score += 3;
  if (action.goOn.in(label)) score += 3;
  if (/primary|submit|login|signin|cta/i.test(`${el.classes} ${item.attributes}`)) score += 1;
  if (item.control === 'link') score -= 3;
  if (el.type === 'reset') score -= 10;
  if (action.forgot.in(label)) score -= 9;
  if (action.goBack.in(label) && !action.logIn.in(label)) score -= 7;
  if (action.logOut.in(label) && !action.logIn.in(label)) score -= 7;
  if (action.sendCode.in(label)) score -= 5;
  if (action.showPassword.in(label) || /eye|toggle|visib/i.test(el.classes)) score -= 7;
  if (action.anotherWay.in(label) || way.skip.in(label)) score -= 7;
  if (passkey.in(label)) score -= 7;
  if (providerOf(item) !== undefined) score -= 9;
  if (way.close.in(label) && !action.logIn.in(label)) score -= 5;
  if (named.search.in(label)) score -= 4;
  if (el.expanded !== undefined || el.role === 'menuitem' || el.role === 'option') score -= 6;
  // An icon inside the field, or beside it in its row, belongs to the field.
  if (label === '' && el.type !== 'submit') score -= 4;
  return { score, signsUp: action.signUp.in(label) && !action.logIn.in(label) };
});
