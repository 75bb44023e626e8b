import { ofPurpose, type Group } from './groups.ts';
import { hasMail, maskedTarget } from './masked.ts';
import { gap, grouped, isClickable, pathOf, type Item, type Page } from './page.ts';
import { providerOf } from './providers.ts';
import type { ChoiceType, MfaType, ReadChoice } from './types.ts';
import * as action from './words/actions.ts';
import * as demand from './words/demands.ts';
import * as named from './words/fields.ts';
import { plain, words } from './words/match.ts';
import { account, otherAccount, skip } from './words/ways.ts';

/** Something to choose, before it has an id. */
export interface Option {
  item: Item;
  type: ChoiceType;
  provider?: string;
  mfaType?: MfaType;
  target?: string;
}

/** Buttons of parties that vouch for the person. They are near the form, or the only controls. */
export function ssoOptions(of: Page, login: Group | undefined): Option[] {
  const first = login?.fields[0]?.item;
  const found = of.items.flatMap((item) => {
    const provider = providerOf(item);
    if (provider === undefined) return [];
    if (first !== undefined && first.el.inDialog && !item.el.inDialog) return [];
    return [{ item, type: 'sso_provider' as const, provider: provider.id }];
  });
  const labels = new Set<string>();
  return found.filter(({ item: { label } }) => !labels.has(label) && labels.add(label));
}

const hardwareKey = words({
  en: 'security key|hardware key|yubikey|usb key|fido|u2f|webauthn|passkey*',
  de: 'sicherheitsschlussel|hardware token|passkey*',
  fr: 'cle de securite|cle d acces',
  es: 'llave de seguridad|clave de seguridad',
  it: 'chiave di sicurezza|token di sicurezza',
  pt: 'chave de seguranca',
  nl: 'beveiligingssleutel',
  pl: 'klucz bezpieczenstwa',
  tr: 'guvenlik anahtari',
  ru: 'ключ безопасности',
  ja: 'セキュリティキー|パスキー',
  zh: '安全密钥|安全金鑰',
});

/** The second factor of a button, link or radio button. */
function factorOf(says: string): { mfaType?: MfaType } | undefined {
  if (named.recoveryCode.in(says)) return {};
  if (action.anotherWay.in(says)) return { mfaType: 'switch' };
  if (hardwareKey.in(says)) return {};
  if (named.authenticatorApp.in(says))
    return demand.push.in(says) && !named.code.in(says) ? { mfaType: 'push' } : { mfaType: 'totp' };
  if (demand.push.in(says)) return { mfaType: 'push' };
  if (demand.textMessage.in(says)) return { mfaType: 'sms' };
  if (demand.phoneCall.in(says)) return { mfaType: 'call' };
  if (named.email.in(says)) return { mfaType: 'email' };
  if (named.phone.in(says)) return { mfaType: 'sms' };
  if (demand.byPassword.in(says)) return { mfaType: 'password' };
  return undefined;
}

const otherLink = /\b(?:help|support|contact|privacy|terms|impressum|imprint)\b/;

/**
 * The choices of a second factor. `onCode` is true on a page that asks for a code already: there only what says that it is
 * another way counts, not each mention of mail or phone.
 */
export function factorOptions(of: Page, onCode: boolean): Option[] {
  const found: Option[] = [];
  for (const item of [...of.items, ...drawnOver(of)]) {
    const isRadio = item.control === 'radio';
    if (!isClickable(item) && !isRadio) continue;
    const says = choiceText(item);
    if (says === '' || says.length > 220 || otherLink.test(plain(says)) || action.goBack.in(item.label)) continue;
    if (item.el.href?.startsWith('mailto:') || item.el.href?.startsWith('tel:')) continue;
    if (action.forgot.in(item.label) || skip.in(item.label) || isNewCode(item.label)) continue;
    if (providerOf(item) !== undefined) continue;
    const factor = factorOf(says);
    if (factor === undefined) continue;
    if (onCode && !isRadio && factor.mfaType !== 'switch' && !leadsElsewhere(item)) continue;
    const target = maskedTarget(says);
    found.push({ item, type: 'mfa_method', ...factor, ...(target ? { target } : {}) });
  }
  return found;
}

/** "Resend the code" is no other way. */
function isNewCode(label: string): boolean {
  return (
    /resend|again|erneut|renvoyer|reenviar|ponownie|tekrar|повторно|再送|重新/i.test(label) ||
    /didn.t|not receive/i.test(label)
  );
}

/** On the page of one factor, a link or button that names another. */
function leadsElsewhere({ label, control, el }: Item): boolean {
  return (
    action.using.in(label) ||
    control === 'tab' ||
    named.recoveryCode.in(label) ||
    action.sendCode.in(label) ||
    demand.byPassword.in(label) ||
    (control === 'link' && el.href !== undefined) ||
    label.length < 60
  );
}

/** Radio buttons that are drawn by their label only: the input itself has no size. */
export function drawnOver(of: Page): Item[] {
  return of.hidden.filter(({ control, el, frame }) => control === 'radio' && el.labels.length > 0 && frame.visible);
}

export function choiceText({ el, label, control }: Item): string {
  const own = [...(control === 'radio' ? el.labels : []), label, el.description ?? ''];
  return [...new Set(own.filter((part) => part !== ''))].join(' ');
}

/** Accounts that a person has used before. */
export function accountOptions(of: Page): Option[] {
  const clickable = of.items.filter((item) => isClickable(item) && !item.el.href?.startsWith('mailto:'));
  const withMail = clickable.filter(
    ({ label, el }) =>
      hasMail(`${label} ${el.description ?? ''}`) && !action.goBack.in(label) && !action.logOut.in(label),
  );
  const others = clickable.filter(({ label }) => otherAccount.in(label));
  const asked = demand.chooseAccount.in(
    ...of.headings,
    of.snapshot.title,
    ...of.texts.map(({ text }) => text).filter((text) => text.length < 80),
  );
  const mails = new Set(withMail.map(({ label }) => label));
  const continues = clickable.filter(({ label }) => demand.chooseAccount.in(label) && !mails.has(label));
  if (withMail.length + continues.length === 0 && !(asked && others.length > 0)) return [];
  if (withMail.length < 2 && others.length === 0 && !asked && continues.length === 0) return [];
  return [...withMail, ...continues, ...others].map((item) => ({ item, type: 'account' }));
}

/** Other ways of the site itself: by password, by mail, by code, by QR code. */
export function methodOptions(of: Page, login: Group | undefined): Option[] {
  const hasPassword = login !== undefined && ofPurpose(login, 'password', 'pin').length > 0;
  return of.items.flatMap((item): Option[] => {
    if (!isClickable(item) || item === login?.submit || providerOf(item) !== undefined) return [];
    const { label, el } = item;
    if (
      label === '' ||
      label.length > 80 ||
      action.forgot.in(label) ||
      action.signUp.in(label) ||
      action.goBack.in(label)
    )
      return [];
    if (action.showPassword.in(label) || action.logOut.in(label)) return [];
    if (demand.byPassword.in(label) && !hasPassword) return [{ item, type: 'sign_in_method', mfaType: 'password' }];
    if (demand.passkey.in(label)) return [{ item, type: 'sign_in_method' }];
    const asks =
      action.logIn.in(label) || action.goOn.in(label) || action.sendCode.in(label) || /^(?:use|mit|per)\b/i.test(label);
    const isAlternative = asks && action.using.in(label);
    if (isAlternative && named.email.in(label)) return [{ item, type: 'sign_in_method', mfaType: 'email' }];
    if (isAlternative && (named.phone.in(label) || demand.textMessage.in(label)))
      return [{ item, type: 'sign_in_method', mfaType: 'sms' }];
    if (action.logIn.in(label) && named.code.in(label)) return [{ item, type: 'sign_in_method' }];
    if (/\bldap\b|\bactive directory\b|\bkerberos\b/i.test(label) && !el.selected)
      return [{ item, type: 'auth_method' }];
    if (action.anotherWay.in(label)) return [{ item, type: 'sign_in_method', mfaType: 'switch' }];
    if (/\bqr\b|扫码|二维码/i.test(label) && (asks || item.control === 'tab'))
      return [{ item, type: 'sign_in_method' }];
    if (login !== undefined && isTabOf(item, login)) {
      return [
        demand.textMessage.in(label) ? { item, type: 'sign_in_method', mfaType: 'sms' } : { item, type: tabType(item) },
      ];
    }
    return [];
  });
}

/** A tab beside the form that shows another form. */
function isTabOf(item: Item, login: Group): boolean {
  const first = login.fields[0]?.item;
  if (item.control !== 'tab' || item.el.selected === true || first === undefined || item.frame !== first.frame)
    return false;
  const { down } = gap(item.el.box, first.el.box);
  return down < 260 && item.order < first.order && !action.signUp.in(item.label);
}

function tabType({ label }: Item): ChoiceType {
  return named.email.in(label) || named.phone.in(label) || named.username.in(label)
    ? 'identifier_method'
    : 'auth_method';
}

/**
 * Things of one make in a row or column, on a page of a login without a field: which kind of account, which organisation.
 * Works without words.
 */
export function peerOptions(of: Page): Option[] {
  const candidates = of.items.filter(
    (item) =>
      isClickable(item) &&
      item.frame.main &&
      item.label !== '' &&
      item.label.length <= 100 &&
      !action.forgot.in(item.label) &&
      !action.signUp.in(item.label) &&
      !action.goBack.in(item.label) &&
      !otherLink.test(plain(item.label)) &&
      item.el.box.width >= 60 &&
      item.el.box.height >= 24,
  );
  const makes = grouped(
    candidates,
    ({ el }) => `${el.tag}|${el.classes}|${Math.round(el.box.height / 12)}|${el.inDialog}`,
  );
  const rows = [...makes.values()].filter((items) => items.length >= 2 && items.length <= 12 && areTogether(items));
  const best = rows.sort((a, b) => size(b) - size(a))[0] ?? [];
  return best.map((item) => ({ item, type: account.in(item.label) ? 'auth_method' : 'sign_in_method' }));
}

function areTogether(items: Item[]): boolean {
  return items.every((item, at) => {
    const before = items[at - 1];
    if (before === undefined) return true;
    const { across, down } = gap(before.el.box, item.el.box);
    return across < 120 && down < 120;
  });
}

/** Big things are choices; small links in a footer are not. */
function size(items: Item[]): number {
  const [first] = items;
  if (first === undefined) return 0;
  const inFooter = items.every(({ el }) => el.tag === 'a' && el.box.height < 30);
  return (inFooter ? 0 : 1000) + first.el.box.height * first.el.box.width;
}

/** Ids by type, provider or place: the same page gives the same ids. */
export function withIds(options: Option[]): ReadChoice[] {
  const taken = new Map<string, number>();
  return options.map(({ item, type, provider, mfaType, target }) => {
    const base = idBase(item, type, provider, mfaType);
    const times = (taken.get(base) ?? 0) + 1;
    taken.set(base, times);
    const description = item.el.description ?? '';
    return {
      id: times === 1 ? base : `${base}_${times}`,
      ref: item.el.ref,
      type,
      label: item.label,
      selectors: [...item.el.selectors],
      ...(description !== '' && description !== item.label ? { description } : {}),
      ...(provider !== undefined ? { provider } : {}),
      ...(mfaType !== undefined ? { mfaType } : {}),
      ...(target !== undefined ? { target } : {}),
    };
  });
}

function idBase(item: Item, type: ChoiceType, provider?: string, mfaType?: MfaType): string {
  if (provider !== undefined) return `sso_${provider}`;
  if (type === 'mfa_method') return `mfa_${mfaType ?? 'other'}`;
  // An address of a person has no place in an id.
  if (type === 'account') return otherAccount.in(item.label) ? 'account_other' : 'account';
  if (mfaType !== undefined) return `method_${mfaType}`;
  const name =
    item.el.name ?? item.el.id ?? (item.el.href === undefined ? '' : pathOf(item.el.href).split('/').at(-1)) ?? '';
  const slug = plain(/^[\w-]{2,40}$/.test(name) && !/\d{3}/.test(name) ? name : item.label)
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
    .slice(0, 40);
  return slug === '' ? type : `${type === 'auth_method' ? 'auth' : 'method'}_${slug}`;
}
