import { once } from './once.ts';
import { type Item, isClickable, pathOf } from './page.ts';
import * as action from './words/actions.ts';
import { passkey, textMessage } from './words/demands.ts';
import * as named from './words/fields.ts';
import { plain, words } from './words/match.ts';

/** Parties that vouch for a person, by the names on their buttons and in their addresses. The first match wins. */
const providers: [id: string, pattern: RegExp][] = [
  ['google', /\bgoogle\b/],
  ['microsoft', /\b(?:microsoft|azure(?: ad)?|entra id|microsoft entra|office ?365|windows live|live id|outlook)\b/],
  ['apple', /\bapple(?: ?id)?\b|appleid/],
  ['facebook', /\b(?:facebook|meta)\b/],
  ['github', /\bgit ?hub\b/],
  ['gitlab', /\bgitlab\b/],
  ['gitea', /\bgitea\b|\bforgejo\b/],
  ['bitbucket', /\bbitbucket\b/],
  ['okta', /\bokta\b/],
  ['auth0', /\bauth0\b/],
  ['linkedin', /\blinkedin\b/],
  ['twitter', /\btwitter\b|(?:^|\s)x(?: com)?$/],
  ['amazon', /\b(?:amazon|cognito)\b/],
  ['onelogin', /\bonelogin\b/],
  ['ping', /\bping ?(?:one|identity|federate)\b/],
  ['yahoo', /\byahoo\b/],
  ['slack', /\bslack\b/],
  ['discord', /\bdiscord\b/],
  ['twitch', /\btwitch\b/],
  ['steam', /\bsteam\b/],
  ['paypal', /\bpaypal\b/],
  ['dropbox', /\bdropbox\b/],
  ['spotify', /\bspotify\b/],
  ['salesforce', /\bsalesforce\b/],
  ['atlassian', /\batlassian\b/],
  ['telegram', /\btelegram\b/],
  ['wechat', /wechat|微信/],
  ['qq', /\bqq\b/],
  ['weibo', /weibo|微博/],
  ['alipay', /alipay|支付宝/],
  ['dingtalk', /dingtalk|钉钉/],
  ['line', /(?:^|\s)line(?:$|\s|て)/],
  ['kakao', /kakao|카카오/],
  ['naver', /naver|네이버/],
  ['vk', /(?:^|\s)(?:vk|vk id|вконтакте)(?:$|\s)/],
  ['yandex', /yandex|яндекс/],
  ['mailru', /mail ru/],
  ['gosuslugi', /госуслуг|gosuslugi|есиа/],
  ['orcid', /\borcid\b/],
  ['shibboleth', /\bshibboleth\b|\bedugain\b|\bedu ?id\b/],
  ['bankid', /\bbank ?id\b|\bfreja\b|\bmit ?id\b|\bvipps\b/],
  ['franceconnect', /\bfrance ?connect\b/],
  ['itsme', /\bitsme\b/],
  ['digid', /\bdigid\b/],
  ['spid', /\bspid\b|\bcie\b/],
  ['keycloak', /\bkeycloak\b/],
  ['authentik', /\bauthentik\b/],
  ['authelia', /\bauthelia\b/],
  ['zitadel', /\bzitadel\b/],
  ['openid', /\bopen ?id(?: connect)?\b|\boidc\b/],
  ['saml', /\bsaml\b/],
  ['oauth', /\boauth ?2?\b/],
  ['cas', /\bcas\b/],
  ['sso', /\bsso\b|\bsingle sign on\b/],
];

const company = words({
  en: 'single sign on|sso|company account|work account|school account|corporate account|institutional login|enterprise login|your organization|organization account|institution',
  de: 'firmenkonto|unternehmensanmeldung|einmalanmeldung|hochschulkonto|geschaftskonto anmeldung',
  fr: 'authentification unique|compte professionnel|compte entreprise|compte institutionnel',
  es: 'inicio de sesion unico|cuenta corporativa|cuenta institucional|cuenta de empresa',
  it: 'account aziendale|accesso unico',
  pt: 'login unico|conta corporativa|conta institucional|conta da empresa|inicio de sessao unico',
  nl: 'eenmalige aanmelding|bedrijfsaccount|werkaccount',
  pl: 'logowanie jednokrotne|konto firmowe|konto sluzbowe',
  tr: 'tek oturum acma|kurumsal hesap|kurumsal giris',
  ru: 'единый вход|корпоративный аккаунт|корпоративная учетная запись|корпоративный вход',
  ja: 'シングルサインオン|会社アカウント|組織アカウント|社内アカウント',
  zh: '单点登录|企业账号|統一認證|统一身份认证|統一登入|企业登录|域账号',
});

/** Ways of the site itself: "log in with e-mail" is no provider. */
const ownWays = words({
  en: 'email|e mail|password|username|phone|mobile|code|link|qr|qr code|account|credentials|pin|another|different|ldap|local|certificate|smart card|token|passphrase|number|device',
  de: 'benutzername|zugangsdaten|konto|handynummer|anderen|anderem|zertifikat|lokal*|kundennummer|gerat',
  fr: 'identifiant*|compte|lien|autre|certificat|numero|appareil',
  es: 'usuario|cuenta|enlace|otra|otro|certificado|credenciales|dispositivo',
  it: 'utente|account|credenziali|altro|link',
  pt: 'usuario|conta|outra|outro|certificado',
  nl: 'gebruikersnaam|account|andere|link|apparaat',
  pl: 'konto|inne|innego|certyfikat|urzadzenia',
  tr: 'hesap|baska|e devlet|cihaz',
  ru: 'логин*|аккаунт*|другой|другого|ссылк*',
  ja: '別の|アカウント|デバイス|端末',
  zh: '账号|帐号|其他|扫码|二维码|二維碼|设备|裝置',
});

/** Links to a site's presence elsewhere, its privacy terms and its app are no ways to log in. */
const elsewhere =
  /\b(?:privacy|terms|policy|policies|follow|play store|google play|app store|share|download|analytics|recaptcha|maps?|datenschutz|folgen)\b/;

/** The party behind an SSO button, or undefined. Whether the button is one depends on its place as well. */
export const providerOf = once((item: Item): { id: string; name: string } | undefined => {
  if (!isClickable(item)) return undefined;
  const label = plain(item.label);
  if (elsewhere.test(label) || label.length > 90) return undefined;
  if (action.signUp.in(label) && !action.logIn.in(label) && !action.goOn.in(label)) return undefined;
  const asks = action.logIn.in(label) || action.goOn.in(label) || action.using.in(label);
  const target = item.el.href === undefined ? '' : pathOf(item.el.href).replace(/[^\p{L}\p{N}]+/gu, ' ');
  const traits = `${item.attributes} ${item.el.classes.toLowerCase().replace(/[^a-z0-9]+/g, ' ')}`;
  const found = providers.find(([, pattern]) => pattern.test(label));
  if (found !== undefined) {
    const namedOnly = label.split(' ').length <= 3;
    const isProfile =
      item.control === 'link' && !/auth|login|sso|connect|openid|saml|sign|social|external|provider|cas/.test(target);
    if (
      (asks && !isProfile) ||
      (item.control === 'button' && namedOnly) ||
      (namedOnly && !isProfile) ||
      (asks && item.el.role === 'button')
    )
      return { id: found[0], name: item.label };
    return undefined;
  }
  if (company.in(label)) return { id: 'sso', name: item.label };
  if (passkey.in(label) || action.sendCode.in(label) || named.password.in(label) || textMessage.in(label))
    return undefined;
  const structural = /\b(?:oauth2?|oidc|openid|saml|sso|social|federated?|idp|external ?login|provider)\b/;
  if (
    !ownWays.in(label) &&
    structural.test(target) &&
    (asks || structural.test(traits)) &&
    !action.logOut.in(label) &&
    !action.forgot.in(label)
  ) {
    const byTrait = providers.find(([, pattern]) => pattern.test(target) || pattern.test(traits));
    if (label !== '' || byTrait !== undefined) return { id: byTrait?.[0] ?? 'sso', name: item.label };
  }
  if (label === '') {
    const byTrait = providers.slice(0, 30).find(([, pattern]) => pattern.test(traits));
    return byTrait !== undefined && /auth|login|sso|social|sign/.test(`${target} ${traits}`)
      ? { id: byTrait[0], name: byTrait[0] }
      : undefined;
  }
  // "Log in with Example ID": an unknown party.
  if (
    action.logIn.in(label) &&
    action.using.in(label) &&
    !ownWays.in(label) &&
    /\s/.test(label) &&
    item.control !== 'tab'
  ) {
    return /\p{Lu}/u.test(item.label.slice(1)) ? { id: slug(item.label), name: item.label } : undefined;
  }
  return undefined;
});

/** "Sign in with Example ID" → example_id. */
function slug(label: string): string {
  const name = /(?:with|using|via|mit|über|avec|par|con|com|met|przez|ile|med)\s+(\S.*)/i.exec(label)?.[1] ?? label;
  return (
    plain(name)
      .replace(/[^a-z0-9]+/g, '_')
      .replace(/^_|_$/g, '')
      .slice(0, 40) || 'sso'
  );
}
