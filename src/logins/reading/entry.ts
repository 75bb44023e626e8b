import { urlOf } from '../../lib/urls.ts';
import { isClickable, isLoginPath, isLogoutPath, isSureLoginPath, pathOf, type Item, type Page } from './page.ts';
import { providerOf } from './providers.ts';
import * as action from './words/actions.ts';
import { plain } from './words/match.ts';
import * as way from './words/ways.ts';

/** The links and buttons that open the login, the best first. */
export function entries(of: Page, domain: string): Item[] {
  return ranked(of.items, domain, of.snapshot.url);
}

/** Those in closed menus. */
export function hiddenEntries(of: Page, domain: string): Item[] {
  return ranked(of.hidden, domain, of.snapshot.url);
}

function ranked(items: Item[], domain: string, url: string): Item[] {
  return items
    .map((item) => ({ item, score: scoreOf(item, domain, url) }))
    .filter(({ score }) => score >= 3)
    .sort((a, b) => b.score - a.score || a.item.order - b.item.order)
    .map(({ item }) => item);
}

function scoreOf(item: Item, domain: string, url: string): number {
  if (!isClickable(item) || item.el.disabled) return 0;
  const { el, label } = item;
  const href = el.href ?? '';
  if (/^(?:mailto|tel):/.test(href)) return 0;
  const path = pathOf(href);
  const leads = isLoginPath(path);
  const says = action.logIn.in(label);
  if (action.logOut.in(label) || isLogoutPath(path)) return 0;
  if (action.forgot.in(label) || providerOf(item) !== undefined) return 0;
  const signsUp = action.signUp.in(label) && !says;
  if (signsUp) return 0;
  // A link to the same page has no effect.
  if (item.control === 'link' && href !== '' && href.split('#')[0] === url.split('#')[0] && !/#./.test(href)) return 0;
  let score = 0;
  const length = plain(label).length;
  if (says) score += length <= 25 ? 4 : length <= 45 ? 2 : -2;
  if (isSureLoginPath(path)) score += 3;
  else if (leads) score += 1.5;
  if (way.account.in(label) && length <= 30) score += leads ? 1 : /account|user|member|portal|my/.test(path) ? 2 : 1;
  if (item.control === 'tab') score += 1;
  if (el.inViewport) score += 0.5;
  if (el.box.y < 160) score += 0.5;
  if (action.signUp.in(label)) score -= 1;
  if (href !== '' && !isOf(href, domain)) score -= 1.5;
  if (/help|support|blog|docs|faq|article|news/.test(path)) score -= 3;
  return score;
}

function isOf(href: string, domain: string): boolean {
  const { hostname = '' } = urlOf(href) ?? {};
  const base = domain.replace(/^www\./, '').split(':')[0] ?? domain;
  return (
    hostname === '' ||
    hostname === base ||
    hostname.endsWith(`.${base}`) ||
    base.endsWith(`.${hostname.replace(/^www\./, '')}`)
  );
}

/** A closed menu that may hold the login: the account's first, then the main one. */
export function menus(of: Page): Item[] {
  const closed = of.items.filter(
    (item) =>
      (item.control === 'button' || item.control === 'link') &&
      item.el.expanded !== true &&
      item.label.length <= 40 &&
      !action.signUp.in(item.label),
  );
  const marks = (item: Item) => `${item.el.classes} ${item.attributes}`;
  const isAccount = (item: Item) =>
    (way.account.in(item.label) || /\b(?:account|user|profile|avatar|login|signin)\b/i.test(marks(item))) &&
    (item.el.expanded === false || item.control === 'button');
  const isMenu = (item: Item) =>
    way.menu.in(item.label) ||
    /hamburger|burger|navbar-toggle|menu-?(?:toggle|button|icon|btn)|nav-?toggle/i.test(marks(item));
  const accounts = closed.filter((item) => isAccount(item) && !isMenu(item));
  return [...accounts, ...closed.filter(isMenu)];
}

/** The way to log out, which only logged-in users are offered. Closed menus count. */
export function wayOut(of: Page): Item | undefined {
  return [...of.items, ...of.hidden].find((item) => {
    if (!isClickable(item) || item.label.length > 40) return false;
    const leads =
      isLogoutPath(pathOf(item.el.href ?? '')) ||
      (isLogoutPath(item.attributes.replaceAll(' ', '')) && item.control === 'button');
    return leads || (action.logOut.in(item.label) && plain(item.label).split(' ').length <= 5);
  });
}
