import { urlOf } from '../../lib/urls.ts';
import type { Form } from './forms.ts';
import { ofPurpose } from './groups.ts';
import { isClickable, titles, type Item, type Page } from './page.ts';
import { providerOf } from './providers.ts';
import type { TextBlock } from './snapshot.ts';
import * as action from './words/actions.ts';
import * as error from './words/errors.ts';
import { words } from './words/match.ts';
import { captchaText } from './words/extras.ts';
import * as text from './words/texts.ts';

/** Addresses of services that distinguish people from programs. */
const captchaHost =
  /recaptcha|hcaptcha|challenges\.cloudflare|turnstile|arkoselabs|funcaptcha|geetest|captcha-delivery|datadome|friendlycaptcha|mtcaptcha|perimeterx|px-captcha|\bcaptcha\b/i;

/** Why the page needs a person to prove to be one, or undefined. */
export function captchaSign(of: Page, form: Form | undefined): string | undefined {
  for (const frame of of.snapshot.frames) {
    if (frame.main || !frame.visible || !captchaHost.test(frame.url)) continue;
    const { box } = frame;
    if (box === undefined || box.width < 150 || box.height < 50 || box.y < 0 || box.x < 0) continue;
    // The badge of a check that runs unseen.
    if (/size=invisible/.test(frame.url) || (box.height <= 62 && box.width <= 260)) continue;
    if (frame.elements.some(({ checked }) => checked === true)) continue;
    return `a captcha is on the page: ${hostOf(frame.url)}`;
  }
  if (form !== undefined && ofPurpose(form.group, 'captcha').length > 0)
    return 'the form asks for the text of a picture';
  const box = of.items.find(
    ({ control, says, el }) => control === 'checkbox' && captchaText.in(says) && el.checked !== true,
  );
  if (box !== undefined) return `a box asks whether a person is there: "${box.label}"`;
  const heads = titles(of);
  const hasFields = form !== undefined && form.group.fields.length > 0;
  const wall =
    heads.find((head) => text.botCheck.in(head)) ??
    of.texts.find((block) => text.botCheck.in(block.text) && block.text.length < 160)?.text;
  if (!hasFields && wall !== undefined && of.items.filter(isClickable).length <= 10)
    return `the site checks the browser: "${wall}"`;
  const asked = heads.find((head) => captchaText.in(head));
  if (!hasFields && asked !== undefined) return `the page asks for a proof of being a person: "${asked}"`;
  const slider = of.items.find(({ el, says }) => el.role === 'slider' && captchaText.in(says, el.near));
  return slider === undefined ? undefined : 'a slider has to be moved';
}

const hostOf = (url: string) => urlOf(url)?.hostname ?? 'an address that is none';

const waiting = words({
  en: 'loading|please wait|redirecting|one moment|initializing|starting',
  de: 'wird geladen|bitte warten|weiterleitung|ladt|laden|einen moment',
  fr: 'chargement|veuillez patienter|redirection',
  es: 'cargando|espere|redirigiendo|un momento',
  it: 'caricamento|attendere|reindirizzamento',
  pt: 'carregando|aguarde|redirecionando|a carregar',
  nl: 'laden|even geduld|bezig met laden',
  pl: 'ladowanie|prosze czekac|trwa ladowanie|wczytywanie',
  tr: 'yukleniyor|lutfen bekleyin|yonlendiriliyor',
  ru: 'загрузка|подождите|перенаправление|идет загрузка',
  ja: '読み込み中|お待ちください|ロード中',
  zh: '加载中|请稍候|正在加载|載入中|请稍等|跳转',
  cs: 'nacitani|cekejte|nacita se',
  sv: 'laddar|vanta',
  da: 'indlaeser|vent venligst',
  no: 'laster',
  fi: 'ladataan|odota',
  ko: '로딩|불러오는 중|잠시만',
  ar: 'جار التحميل|تحميل',
  uk: 'завантаження|зачекайте',
});

/** Things to click on a page that is still coming: a logo, help, a button to load it again. */
const mostAround = 4;
/** Characters of all texts of such a page, and of the one that says so. */
const mostSaid = 300;
const mostNotice = 80;

/** Nothing to see yet, or only that something is coming. */
export function blankSign(of: Page): string | undefined {
  const notice = of.texts.find(isNotice);
  if (notice !== undefined && isAlone(of)) return `the page is still coming: "${notice.text}"`;
  if (of.items.some((item) => item.control !== 'link' || item.label !== '')) return undefined;
  const all = of.texts
    .map((block) => block.text)
    .join(' ')
    .trim();
  if (all === '') return 'nothing is visible';
  if (all.length <= 80 && waiting.in(all)) return `the page is still coming: "${all}"`;
  if (of.snapshot.loading && all.length <= 40) return 'the document is loading and shows almost nothing';
  return undefined;
}

/** "Initializing…". The words have other meanings too ("Laden" is a shop), so dots, or how the page marks it, have to say it as well. */
function isNotice({ text, live, classes }: TextBlock): boolean {
  if (text.length > mostNotice || !waiting.in(text)) return false;
  const end = text.trimEnd();
  return end.endsWith('…') || end.endsWith('...') || live || /load|spin|progress|splash/i.test(classes);
}

/** What pages ask to wait for that is no page to come. */
const telling = [
  text.actElsewhere,
  text.sent,
  text.botCheck,
  text.maintenance,
  error.refused,
  error.locked,
  error.tooMany,
  captchaText,
];

/** Nothing beside a notice asks for anything, refuses anything, or leads to a login. */
function isAlone({ items, texts }: Page): boolean {
  const said = texts.reduce((sum, block) => sum + block.text.length, 0);
  if (said > mostSaid || items.length > mostAround) return false;
  const leads = (item: Item) => action.logIn.in(item.label) || providerOf(item) !== undefined;
  const says = texts.map((block) => block.text);
  return items.every((item) => isClickable(item) && !leads(item)) && !telling.some((told) => told.in(...says));
}

export function maintenanceSign(of: Page): string | undefined {
  const status = of.snapshot.httpStatus;
  if (status === 502 || status === 503 || status === 504) return `the site answered with status ${status}`;
  const head = titles(of).find((title) => text.maintenance.in(title));
  if (head !== undefined) return `the page says that the site is not available: "${head}"`;
  const all = of.texts.map((block) => block.text);
  const notice = all.find((block) => text.maintenance.in(block) && block.length <= 200);
  return notice !== undefined && all.join(' ').length < 600 && of.items.filter(isClickable).length <= 6
    ? `the page says that the site is not available: "${notice}"`
    : undefined;
}

/** A new secret for an authenticator app, as pages show it: sixteen or more characters of base32, often in groups of four. */
const secretPattern =
  /(?<![A-Za-z0-9/=_-])(?:[A-Z2-7]{16,128}|(?:[A-Za-z2-7]{4}[ -]){3,31}[A-Za-z2-7]{2,4})(?![A-Za-z0-9/_-])/g;

export function shownSecret(of: Page): string | undefined {
  const sources = [...of.texts.map((block) => block.text), ...of.items.map(({ el }) => el.href ?? '').map(secretOfUri)];
  for (const source of sources) {
    for (const [found] of source.matchAll(secretPattern)) {
      const bare = found.replace(/[ -]/g, '');
      // Ordinary words of four letters make groups too, but they have no digits.
      if (bare.length >= 16 && (/[2-7]/.test(bare) || found === bare) && /[A-Za-z]/.test(bare)) return found;
    }
  }
  return undefined;
}

function secretOfUri(href: string): string {
  if (!href.startsWith('otpauth:')) return '';
  return /[?&]secret=([A-Za-z2-7]+)/.exec(href)?.[1]?.toUpperCase() ?? '';
}
