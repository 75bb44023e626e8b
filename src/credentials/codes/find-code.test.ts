import { describe, expect, test } from 'vitest';
import { codeIn } from './find-code.ts';

type Mail = [name: string, code: string | undefined, mail: { subject?: string; text?: string; html?: string }];

/** Written like mails and messages of known sites, with other names and numbers. */
const mails: Mail[] = [
  [
    'a code on a line of its own',
    '482913',
    {
      subject: 'Your verification code',
      text: 'Hi Ann,\n\nYour verification code is:\n\n482913\n\nIt expires in 10 minutes.\n© 2026 Shop Inc., 100 Market Street, San Francisco, CA 94105',
    },
  ],
  [
    'a code in the subject alone',
    '731904',
    {
      subject: '731904 is your Shop code',
      text: 'Use the code in the subject to sign in. This request came from 203.0.113.7 on 12/05/2026 at 10:30.',
    },
  ],
  ['a prefix that is on the page already', '482913', { text: 'G-482913 is your Google verification code.' }],
  ['another prefix', '90412', { text: 'FB-90412 is your Facebook confirmation code' }],
  [
    'two groups with a blank',
    '482913',
    {
      subject: 'Sign in to Notes',
      text: 'Enter this code to continue: 482 913\n\nIf you did not ask for it, ignore this mail.',
    },
  ],
  ['two groups with a dash', '482913', { text: 'Your one-time passcode: 482-913. Never share it.' }],
  [
    'four and four digits',
    '12349876',
    { text: 'Ihr Einmalpasswort lautet\n\n1234 9876\n\nGültig bis 2026-05-12 10:45.' },
  ],
  [
    'digits with blanks between all of them',
    '482913',
    { subject: 'Confirm your email', text: 'Your confirmation code:\n4 8 2 9 1 3\n' },
  ],
  [
    'letters and digits',
    'R4F2K',
    {
      subject: 'Your account: access from new computer',
      text: 'Login Code\n\nR4F2K\n\nThis mail was generated because of a login attempt from 198.51.100.23 in Springfield. The Games Support Team, PO Box 1688',
    },
  ],
  [
    'letters and digits with a dash',
    'WDJB-MJ4T',
    { text: 'Enter the code WDJB-MJ4T at the device page to finish signing in.' },
  ],
  ['letters only', 'XKQJPD', { text: 'Here is your login code:\n\nXKQJPD\n\nThanks, the team' }],
  ['lower and upper case', 'qXz7K9', { subject: 'Shop', text: 'Your code: qXz7K9' }],
  [
    'an order number before the code',
    '604821',
    { text: 'About your order 99887766: to see it, enter the code 604821. Order no. 55443322.' },
  ],
  [
    'a telephone number after the code',
    '5521',
    { text: 'Your PIN is 5521. Questions? Call +1 (800) 555-0199 or 0800 123 4567.' },
  ],
  [
    'a price after the code',
    '338120',
    { text: 'Approve the payment of EUR 1499 (1,499.00 €) with TAN 338120. Card ending in 4242.' },
  ],
  ['the end of a card', '771265', { text: 'Card **** 4242, Visa xx4242: your security code is 771265 for 250.00 USD' }],
  [
    'a link with numbers',
    '918273',
    {
      text: 'https://shop.example/verify/555666?code=123456&id=99881122\nOr enter 918273, your verification code.\nwww.shop.example/u/445566',
    },
  ],
  [
    'only a link',
    undefined,
    { subject: 'Confirm your mail', text: 'Click here to verify: https://shop.example/confirm?code=482913&u=100200' },
  ],
  ['a code that is bound to a host', '747723', { text: '747723 is your Shop code.\n\n@shop.example #747723' }],
  [
    'a message with a hash for its app',
    '4821',
    { text: '<#> Your Rides code is 4821. Reply STOP ALL to +44 20 7946 0958 to unsubscribe.\nqlRnn4A1sbt' },
  ],
  ['a year in the foot', '5930', { text: 'Your code is 5930\n\nCopyright 2026 Shop. All rights reserved 2019-2026.' }],
  ['a code that looks like a year', '2024', { text: 'Your code: 2024' }],
  [
    'a newsletter with numbers',
    undefined,
    {
      subject: 'Summer sale 2026',
      text: 'Up to 5000 items for 1999 kr. Use promo code SUMMER26 before 31.08.2026. Order no. 12345678.',
    },
  ],
  [
    'a parcel',
    undefined,
    {
      subject: 'Your parcel 00340434161094042557 is on its way',
      text: 'Tracking number 00340434161094042557\nPostcode 10115 Berlin, Hauptstr. 1234',
    },
  ],
  [
    'German',
    '829114',
    {
      subject: 'Ihr Bestätigungscode',
      text: 'Guten Tag,\n\nIhr Sicherheitscode lautet: 829114\n\nDer Code ist 15 Minuten gültig. Kundennummer: 10203040, Tel. 030 1234567',
    },
  ],
  [
    'French',
    '305577',
    {
      subject: 'Votre code de vérification',
      text: 'Bonjour,\nVoici votre code de validation : 305577\nIl expire dans 10 minutes. Service client : 01 23 45 67 89, 75001 Paris',
    },
  ],
  ['Spanish', '660192', { text: 'Tu código de verificación es 660192. No lo compartas. Pedido 4455667.' }],
  ['Italian', '112358', { text: 'Il tuo codice di verifica è 112358. Scade tra 5 minuti. P.IVA 01234567890' }],
  ['Portuguese', '740036', { text: 'Seu código de acesso: 740036\nVálido por 10 minutos. CEP 01310-100' }],
  ['Dutch', '209844', { text: 'Je inlogcode is 209844. Deze code is 30 minuten geldig.' }],
  ['Polish', '557812', { text: 'Twój kod weryfikacyjny to 557812. Kwota: 1200 zł. Infolinia 801 123 456.' }],
  ['Turkish', '481516', { text: 'Doğrulama kodunuz: 481516. Kodu kimseyle paylaşmayın. 2026' }],
  ['Russian', '3907', { text: 'Код подтверждения: 3907. Никому его не сообщайте. Заказ 778899.' }],
  ['Ukrainian', '615243', { text: 'Ваш код підтвердження 615243' }],
  [
    'Japanese',
    '824631',
    {
      subject: '認証コードのお知らせ',
      text: 'ご利用ありがとうございます。\n認証コード：824631\n有効期限は2026年5月12日 10時30分です。お問い合わせ 0120-123-456',
    },
  ],
  ['Japanese with full-width digits', '482913', { text: '確認コードは４８２９１３です。' }],
  ['Chinese', '550731', { text: '【商店】您的验证码为550731，5分钟内有效，请勿泄露。客服电话4008001234' }],
  ['Korean', '318264', { text: '[가게] 인증번호는 318264입니다. 3분 이내에 입력하세요.' }],
  ['Arabic with its own digits', '482913', { text: 'رمز التحقق الخاص بك هو ٤٨٢٩١٣' }],
  ['Swedish', '907162', { text: 'Din engångskod är 907162. Gäller i 10 minuter.' }],
  ['Danish', '644210', { text: 'Din engangskode er 644210' }],
  ['Finnish', '283746', { text: 'Vahvistuskoodisi on 283746. Koodi vanhenee 2026-05-12.' }],
  ['Czech', '129034', { text: 'Váš ověřovací kód: 129034, částka 1500 Kč' }],
  ['Greek', '771003', { text: 'Ο κωδικός επαλήθευσης είναι 771003' }],
  ['Hungarian', '840512', { text: 'Az ellenőrző kódod: 840512. 5000 Ft' }],
  ['Vietnamese', '463728', { text: 'Mã xác minh của bạn là 463728.' }],
  ['a message with a code and nothing else', '482913', { text: '482913\n' }],
  ['no word of a known language', '482913', { text: 'Aero tu vela\n\n482913\n\nMora 2026' }],
  [
    'HTML with a cell for each digit',
    '482913',
    {
      html: '<html><head><title>123456</title><style>.a{width:600px;color:#112233}</style></head><body><p>Your verification code</p><table><tr><td>4</td><td>8</td><td>2</td><td>9</td><td>1</td><td>3</td></tr></table><p>&copy; 2026 Shop, 94105 San Francisco</p></body></html>',
    },
  ],
  [
    'HTML with elements inside of the code',
    '482913',
    {
      html: '<p>Enter <b>482</b><b>913</b> as your one&#8209;time code.</p><a href="https://shop.example/?n=778899">Help 24/7</a>',
    },
  ],
  [
    'a text that only names the HTML',
    '482913',
    { text: 'Your mail program cannot show this message.', html: '<div>Dein Code:<br><span>482913</span></div>' },
  ],
  ['invisible characters', '482913', { text: 'Your code is 4\u200b8\u200b2\u200b9\u200b1\u200b3' }],
  ['bold in a message', '482913', { text: '*482913* is your verification code. For your security, do not share it.' }],
  ['a coupon next to the code', '482913', { text: 'Login code: 482913\nUse coupon code 771199 at the checkout.' }],
  ['a question', '482913', { text: 'Did you ask for the code 482913? If not, text us.' }],
  ['an error code alone', undefined, { text: 'The backup failed with error code 500123 at 10:15.' }],
];

describe('the code of a mail', () => {
  test.each(mails)('%s', (_name, code, mail) => {
    expect(codeIn(mail)).toBe(code);
  });

  test('there are at least forty of them', () => {
    expect(mails.length).toBeGreaterThanOrEqual(40);
  });
});
