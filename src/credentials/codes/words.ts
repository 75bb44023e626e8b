/**
 * The words around one-time codes in mails and messages, in the languages of `logins/reading/words/`. Texts are folded (`folded`) before they
 * are held against them. Each alternative is short and has no nested repetition, so a search takes linear time.
 */

/** Characters of a text that are looked at. More take the service tens of milliseconds, and no mail has its code after so many. */
const mostCharacters = 16 * 1024;

const digitsOf: [first: number, last: number][] = [
  [0x06_60, 0x06_69],
  [0x06_f0, 0x06_f9],
  [0x09_66, 0x09_6f],
];

/** A text without accents, invisible characters and digits of other scripts. Case is kept, since codes may have letters. */
export function folded(text: string): string {
  // A wide comma becomes a narrow one, and must not look like that of a fraction.
  const cut = text.slice(0, mostCharacters).replace(/[，．：]/g, '$& ');
  return cut
    .normalize('NFKD')
    .slice(0, 3 * cut.length + 32)
    .replace(/[\p{M}\p{Cf}]+/gu, '')
    .normalize('NFC')
    .replace(/[٠-٩۰-۹०-९]/g, asciiDigit);
}

function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0)!;
  const [first] = digitsOf.find(([from, to]) => code >= from && code <= to) ?? [code];
  return String(code - first);
}

/** Parts of words, such as the end of "Sicherheitscode" and the stem of "kodunuz". */
const codeParts = [
  String.raw`code[sn]?(?!\p{L})|cod(?:e|igo|ice|igos|ici|ul|ului|i)?(?!\p{L})|kod\p{L}{0,6}|kood\p{L}{1,6}|verification|authentification`,
  String.raw`one[- ]time pass\p{L}{1,6}|einmal(?:passwort|kennwort|pin)|mot de passe a usage unique|(?:contrasena|senha) de (?:un solo uso|uso unico)`,
  'password monouso|haslo jednorazowe|engangslosenord|engangspassord|engangsadgangskode|kertakayttosalasana|tek kullanimlik',
  String.raw`ma (?:xac|otp|bao mat|dang nhap)|код\p{L}{0,4}|одноразов\p{L}{1,4} парол\p{L}{1,3}|κωδικ\p{L}{1,4}|קוד|رمز|كود|کد|รหัส|कोड|ओटीपी`,
  'コード|認証番号|確認番号|ワンタイムパスワード|暗証番号|验证码|驗證碼|动态码|動態碼|动态密码|動態密碼|校验码|校驗碼|安全码|安全碼|确认码|確認碼|验证代码|一次性密码|一次性密碼|一次性代碼|动态口令|登录码|登入碼',
  '인증번호|인증 번호|인증코드|코드|일회용|비밀번호',
];
/** Whole words that are too short to be parts. */
const codeWords = 'otp|pin|tan|token|passcode|2fa|mfa|clave|pincode|smscode';

/** Codes and numbers that no login asks for. */
const otherParts = [
  String.raw`(?:postal|post|zip|promo|promotion|promotional|coupon|voucher|country|area|invite|invitation|gift|gift card|referral|discount|source|bank|dress|bar|qr|tracking|sort|error|status)[- ]?code\p{L}?`,
  'code (?:postal|promo|pays|barre)|codigo (?:postal|promocional|de descuento|de barras|de pais)|codice (?:postale|promozionale|sconto|fiscale|promo|cliente)',
  'postleitzahl|gutscheincode|rabattcode|aktionscode|einladungscode|kortingscode|actiecode|kod (?:pocztowy|rabatowy|promocyjny|kraju)|posta kodu|indirim kodu|промокод|почтовый индекс',
  '郵便番号|クーポン|招待コード|紹介コード|优惠码|優惠碼|邀请码|邀請碼|邮编|邮政编码|郵遞區號|우편번호|쿠폰',
  String.raw`(?:order|invoice|ticket|case|reference|account|customer|client|booking|tracking|phone|member|contract|policy) (?:no|nr|number|num|id)\p{L}{0,2}`,
  String.raw`bestell\p{L}{0,8}|auftrags\p{L}{0,8}|rechnungs\p{L}{0,8}|kundennummer|vorgangsnummer|telefon\p{L}{0,8}|telephone|telefoon\p{L}{0,8}|numero de (?:commande|pedido|telefono|telephone|cliente)|commande|pedido`,
  String.raw`ending (?:in|with)|ends (?:in|with)|last (?:four|4) digits|endet auf|endend auf|se terminant par|terminad\p{L} en|заказ\p{L}{0,3}|телефон\p{L}{0,3}|注文番号|订单号|訂單編號|주문번호|電話番号|电话`,
];
const otherWords =
  'order|invoice|ticket|case|ref|reference|tel|phone|call|fax|mobile|iban|zip|plz|suite|apt|floor|p\\.?o\\. ?box|copyright|since';

const whole = (list: string) => `(?<![\\p{L}\\p{N}])(?:${list})(?![\\p{L}\\p{N}])`;
const anyOf = (parts: readonly string[], list: string) =>
  new RegExp([...parts.map((part) => folded(part)), whole(list)].join('|'), 'giu'); // not linear: of the lists above, each linear

const code = anyOf(codeParts, codeWords);
const other = anyOf(otherParts, otherWords);

/** A word of a text, with the position of its first character and the one after its last. */
export interface Mark {
  from: number;
  to: number;
  isCode: boolean;
}

/** The words for codes and for other numbers in a folded text, in their order. */
export function marksIn(text: string): Mark[] {
  const others = placesOf(other, text);
  const codes = placesOf(code, text);
  let at = 0;
  const sure = codes.filter(({ from, to }) => {
    while (at < others.length && others[at]!.to <= from) at++;
    return at >= others.length || others[at]!.from >= to;
  });
  return [...others.map((one) => ({ ...one, isCode: false })), ...sure.map((one) => ({ ...one, isCode: true }))].sort(
    (one, two) => one.from - two.from,
  );
}

const mostMarks = 2000;

function placesOf(pattern: RegExp, text: string): { from: number; to: number }[] {
  const places = [];
  for (const { index, 0: found } of text.matchAll(pattern)) {
    places.push({ from: index, to: index + found.length });
    if (places.length >= mostMarks) break;
  }
  return places;
}
