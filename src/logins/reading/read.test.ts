import { describe, expect, test } from 'vitest';
import {
  alert,
  button,
  checkbox,
  dialog,
  form,
  heading,
  input,
  link,
  password,
  radio,
  select,
  snapshot,
  words,
  type Part,
} from '../../../test/support/logins/snapshot.ts';
import { brief } from '../../../test/support/logins/brief.ts';
import { read } from './read.ts';
import type { Snapshot } from './snapshot.ts';
import type { ReadContext } from './types.ts';

const context: ReadContext = { domain: 'shop.example' };
const login = 'https://shop.example/login';

const loginForm = (user: string, secret: string, send: string): Part[] =>
  form([input(user), password(secret), button(send)]);
const boxes = (count: number): Part[] =>
  Array.from({ length: count }, (_, at) =>
    input('', { maxlength: 1, box: { x: 400 + at * 50, y: 200, width: 44, height: 48 } }),
  );
const manyLinks = Array.from({ length: 30 }, (_, at) => link(`Product ${at}`, `/products/${at}`));

const pages: Record<string, [Snapshot, string, Partial<ReadContext>?]> = {
  'identifier and password on one page': [
    snapshot([heading('Sign in'), loginForm('Email', 'Password', 'Sign in')]),
    'login identifier:identifier password:password',
  ],
  'a language that no table knows, by order and types': [
    snapshot([heading('Sisselogimine'), loginForm('Xqzw', 'Grmbl', 'Plonk')]),
    'login identifier:identifier password:password',
  ],
  'a date of birth beside the password': [
    snapshot([
      heading('Sign in'),
      form([
        input('Customer number'),
        password('PIN'),
        input('Date of birth', { type: 'date', required: true }),
        button('Sign in'),
      ]),
    ]),
    'login identifier:identifier pin:password text:text',
  ],
  'div soup without a form': [
    snapshot([
      input('', { placeholder: 'E-Mail' }),
      password('', { placeholder: 'Passwort' }),
      button('Anmelden', { tag: 'div', role: 'button' }),
    ]),
    'login identifier:identifier password:password',
  ],
  'the identifier first': [
    snapshot(
      [
        heading('Connexion'),
        form([input('Adresse e-mail', { type: 'email' }), button('Suivant')]),
        link('Mot de passe oublié ?', '/reset'),
      ],
      { url: login },
    ),
    'login identifier:identifier',
  ],
  'the identifier first, by autocomplete alone': [
    snapshot([form([input('Plugh', { autocomplete: 'username webauthn' }), button('Xyzzy')])]),
    'login identifier:identifier',
  ],
  'the password as the second step': [
    snapshot([
      heading('Welcome'),
      form([
        input('Email', { type: 'email', readonly: true, filled: true }),
        password('Enter your password'),
        button('Next'),
      ]),
    ]),
    'login password:password',
  ],
  'a search box and a newsletter are no login': [
    snapshot([
      form([input('Search', { type: 'search' }), button('Search')], 's'),
      manyLinks,
      form([words('Get our newsletter'), input('Email', { type: 'email' }), button('Subscribe')], 'n'),
    ]),
    'unknown',
  ],
  'a newsletter beside a link to the login': [
    snapshot([
      link('Log in', '/login'),
      manyLinks,
      form([words('Newsletter'), input('Email', { type: 'email' }), button('Subscribe')], 'n'),
    ]),
    'entry >entry',
  ],
  'a sign-up form beside the login form': [
    snapshot([
      form(
        [
          heading('New here?'),
          input('Email'),
          password('Password', { autocomplete: 'new-password' }),
          password('Repeat password'),
          button('Create account'),
        ],
        'up',
      ),
      form([heading('Log in'), input('Email'), password('Password'), button('Log in')], 'in'),
    ]),
    'login identifier:identifier password:password',
  ],
  'only a sign-up form, with a link to the login': [
    snapshot([
      heading('Create your account'),
      form([
        input('Full name'),
        input('Email'),
        password('Password', { autocomplete: 'new-password' }),
        button('Sign up'),
      ]),
      words('Already have an account?'),
      link('Log in', '/login'),
    ]),
    'entry >entry',
  ],
  'a tab before the form': [
    snapshot([
      button('Registrieren', { role: 'tab', selected: true }),
      button('Anmelden', { role: 'tab', selected: false }),
      form([
        input('Vorname'),
        input('E-Mail'),
        password('Passwort'),
        password('Passwort wiederholen'),
        button('Konto erstellen'),
      ]),
    ]),
    'entry >tab',
  ],
  'remember me and a language picker are no fields': [
    snapshot([
      form([
        select('', ['English', 'Deutsch', 'Français']),
        input('Username'),
        password('Password'),
        checkbox('Remember me'),
        button('Log in'),
      ]),
    ]),
    'login identifier:identifier password:password',
  ],
  'server and database beside the login': [
    snapshot([
      form([
        select('Server', ['main', 'backup']),
        input('Username'),
        password('Password'),
        input('Database'),
        button('Login'),
      ]),
    ]),
    'login server:text identifier:identifier password:password database:text',
  ],
  'LDAP or local, by radio buttons': [
    snapshot([
      form([
        input('Username'),
        password('Password'),
        radio('LDAP', { name: 'auth_source', near: 'Login source' }),
        radio('Local', { name: 'auth_source', checked: true }),
        button('Log in'),
      ]),
    ]),
    'login identifier:identifier password:password account_type:text',
  ],
  'one box for a code': [
    snapshot([
      heading('Two-factor authentication'),
      form([input('Authentication code', { inputmode: 'numeric', maxlength: 6 }), button('Verify')]),
    ]),
    'code code:totp_code',
  ],
  'six boxes for a code': [
    snapshot([
      heading('Enter the code'),
      words('We sent a code to a***@example.com'),
      form([...boxes(6), button('Continue')]),
    ]),
    'code code:code×6',
  ],
  'six boxes in a language that no table knows': [
    snapshot([heading('Qwrt'), boxes(6), button('Zzz')]),
    'code code:code×6',
  ],
  'a code and another way': [
    snapshot([
      heading('2-Step Verification'),
      words('Enter the code from your authenticator app'),
      form([input('Code', { autocomplete: 'one-time-code' }), button('Next')]),
      button('Try another way', { type: 'button' }),
    ]),
    'code code:totp_code (mfa_switch)',
  ],
  'a choice of the second factor': [
    snapshot([
      heading('Verify your identity'),
      button('Text message to •••• 42', { type: 'button' }),
      button('Authenticator app', { type: 'button' }),
      button('Email a***@example.com', { type: 'button' }),
    ]),
    'choice (mfa_sms) (mfa_totp) (mfa_email)',
    { submitted: ['password'] },
  ],
  'an account picker': [
    snapshot([
      heading('Choose an account'),
      button('Alice alice@example.com', { tag: 'div', role: 'link' }),
      button('Bob bob@example.com', { tag: 'div', role: 'link' }),
      button('Use another account', { tag: 'div', role: 'link' }),
    ]),
    'choice (account) (account_2) (account_other)',
  ],
  'SSO buttons beside the form': [
    snapshot([
      loginForm('Email', 'Password', 'Log in'),
      button('Continue with Google', { type: 'button' }),
      link('Sign in with SSO', '/saml/start'),
    ]),
    'login identifier:identifier password:password (sso_google) (sso_sso)',
  ],
  'SSO buttons and a way by mail': [
    snapshot([
      heading('Log in'),
      button('Continue with Google', { type: 'button' }),
      button('Continue with Apple', { type: 'button' }),
      button('Continue with email', { type: 'button' }),
    ]),
    'choice (sso_google) (sso_apple) (method_email) >entry',
  ],
  'links of a footer are no SSO': [
    snapshot([
      loginForm('Email', 'Password', 'Log in'),
      link('Facebook', 'https://facebook.com/shop'),
      link('Get it on Google Play', 'https://play.google.com/x'),
    ]),
    'login identifier:identifier password:password',
  ],
  'a log-in link': [snapshot([link('Home', '/home'), link('Anmelden', '/konto'), manyLinks]), 'entry >entry'],
  'a log-in link by its address': [snapshot([link('Zorp', '/account/login'), manyLinks]), 'entry >entry'],
  'a log-in link in a closed menu': [
    snapshot([
      button('Menu', { type: 'button', expanded: false }),
      link('Se connecter', '/connexion', { visible: false }),
      manyLinks,
    ]),
    'entry >menu',
  ],
  'a cookie banner over the form': [
    snapshot([
      form([
        input('Email', { covered: true }),
        password('Password', { covered: true }),
        button('Log in', { covered: true }),
      ]),
      dialog([
        words('We use cookies to make this site work better.'),
        button('Accept all', { type: 'button' }),
        button('Reject all', { type: 'button' }),
      ]),
    ]),
    'login identifier:identifier password:password >dismiss >dismiss',
  ],
  'an overlay over the entry': [
    snapshot([
      link('Log in', '/login', { covered: true }),
      manyLinks,
      dialog([heading('Install our app'), button('Not now', { type: 'button' })]),
    ]),
    'entry >dismiss >entry',
  ],
  'check your mail': [
    snapshot([
      heading('Check your email'),
      words('We sent a sign-in link to a***@example.com.'),
      button('Resend', { type: 'button' }),
    ]),
    'external',
    { submitted: ['identifier'] },
  ],
  'approve on the phone, or another way': [
    snapshot(
      [
        heading('Anmeldung bestätigen'),
        words('Öffnen Sie die App auf Ihrem Smartphone und tippen Sie auf Ja.'),
        link('Andere Methode verwenden', '/login/other'),
      ],
      { url: login },
    ),
    'external (mfa_switch)',
    { submitted: ['password'] },
  ],
  'stay signed in?': [
    snapshot([heading('Stay signed in?'), button('No', { type: 'button' }), button('Yes')]),
    'interstitial >stay_signed_in',
  ],
  consent: [
    snapshot([heading('Example wants to access your account'), button('Cancel', { type: 'button' }), button('Allow')]),
    'interstitial >accept',
  ],
  'terms with a box': [
    snapshot([heading('Terms of service'), form([checkbox('I have read the terms'), button('Continue')])]),
    'interstitial >accept! >accept',
    { submitted: ['password'] },
  ],
  'set up two-factor or skip': [
    snapshot([
      heading('Protect your account'),
      words('Set up two-factor authentication'),
      button('Set up', { type: 'button' }),
      link('Not now', '/skip'),
    ]),
    'interstitial >skip',
    { submitted: ['password'] },
  ],
  'change the password, or later': [
    snapshot([
      heading('Change your password'),
      form([
        password('Current password'),
        password('New password'),
        password('Confirm new password'),
        button('Change'),
      ]),
      link('Remind me later', '/home'),
    ]),
    'interstitial >skip',
  ],
  'change the password': [
    snapshot([
      heading('Ihr Passwort ist abgelaufen'),
      form([password('Neues Passwort'), password('Passwort wiederholen'), button('Speichern')]),
    ]),
    'change_password new_password:password confirm_password:password',
  ],
  'enrolment of an authenticator app': [
    snapshot([
      heading('Set up your authenticator'),
      words('Scan the QR code or enter this key: JBSW Y3DP EHPK 3PXP'),
      form([input('Code from the app', { inputmode: 'numeric' }), button('Activate')]),
    ]),
    'enrol_totp code:totp_code',
  ],
  'a captcha': [
    snapshot([loginForm('Email', 'Password', 'Log in')], {
      frames: [
        {
          url: 'https://www.google.com/recaptcha/api2/anchor?size=normal',
          box: { x: 400, y: 300, width: 304, height: 78 },
        },
      ],
    }),
    'captcha identifier:identifier password:password',
  ],
  'the badge of an unseen captcha': [
    snapshot([loginForm('Email', 'Password', 'Log in')], {
      frames: [
        {
          url: 'https://www.google.com/recaptcha/api2/anchor?size=invisible',
          box: { x: 1000, y: 700, width: 256, height: 60 },
        },
      ],
    }),
    'login identifier:identifier password:password',
  ],
  'the text of a picture': [
    snapshot([form([input('账号'), password('密码'), input('验证码', { maxlength: 4 }), button('登录')])]),
    'captcha identifier:identifier password:password captcha:text',
  ],
  'a code by SMS, with a tab for the password': [
    snapshot([
      button('短信登录', { role: 'tab', selected: true }),
      button('密码登录', { role: 'tab', selected: false }),
      form([input('手机号'), input('验证码'), button('获取验证码', { type: 'button' }), button('登录')]),
    ]),
    'login identifier:identifier code:code (method_password) >tab',
  ],
  'only a passkey': [
    snapshot([heading('Sign in'), button('Sign in with a passkey', { type: 'button' })], { url: login }),
    'passkey (method_sign_in_with_a_passkey)',
  ],
  'a locked account': [
    snapshot([heading('Sign in'), alert('Your account has been locked.'), loginForm('Email', 'Password', 'Sign in')]),
    'locked',
  ],
  'maintenance by words': [snapshot([heading('Wartungsarbeiten'), words('Wir sind gleich zurück.')]), 'maintenance'],
  'maintenance by status': [snapshot([heading('Oops')], { httpStatus: 503 }), 'maintenance'],
  'HTTP Basic': [snapshot([], { basicAuth: { origin: 'https://shop.example', refused: false } }), 'basic'],
  'nothing yet': [snapshot([words('Loading…')], { loading: true }), 'blank'],
  'a page for a logged-in user': [
    snapshot([link('Mon compte', '/compte'), link('Déconnexion', '/logout'), manyLinks]),
    'signed_in',
  ],
  'logged in, with the way out in a closed menu': [
    snapshot([
      button('Account', { type: 'button', expanded: false }),
      link('Sign out', '/bye', { visible: false }),
      manyLinks,
    ]),
    'signed_in',
  ],
  'a sign-up form with terms is no page of terms': [
    snapshot([
      heading('Üye Ol'),
      form([input('Ad Soyad'), input('E-posta'), checkbox('Kullanım şartlarını okudum'), button('Devam Et')]),
      link('Giriş yap', '/giris'),
    ]),
    'entry >entry',
  ],
  'a form of an advertisement is no login': [
    snapshot([form([input('Plate'), input('Price'), input('Contact', { type: 'tel' }), button('Send')])]),
    'unknown',
  ],
  'six boxes over two rows': [
    snapshot([
      heading('Enter code'),
      form([
        ...boxes(6).map((box, at) => ({
          el: {
            ...('el' in box ? box.el : { tag: 'input' }),
            box: { x: 400 + (at % 4) * 50, y: 200 + Math.floor(at / 4) * 60, width: 44, height: 48 },
          },
        })),
        button('Verify'),
      ]),
    ]),
    'code code:code×6',
  ],
  'a link with a word for closing in its text closes nothing': [
    snapshot([
      form([input('User', { covered: true }), password('Password'), button('Log in')]),
      link("30'luk abilerden", '/post'),
    ]),
    'login identifier:identifier password:password',
  ],
  'a login by a device is no provider': [
    snapshot([loginForm('Name', 'Passwort', 'Anmelden'), button('Mit einem Gerät anmelden', { type: 'button' })]),
    'login identifier:identifier password:password',
  ],
  'a button of the site’s own word for entering is no provider': [
    snapshot([form([password('Password'), button('Entra')])], { lang: 'it' }),
    'login password:password',
  ],
  'kinds of accounts to choose from': [
    snapshot(
      [
        heading('Log in'),
        button('Private customers', { type: 'button', classes: 'tile' }),
        button('Business customers', { type: 'button', classes: 'tile' }),
      ],
      { url: login },
    ),
    'choice (method_private_customers) (method_business_customers)',
  ],
};

describe('a page is read as', () => {
  test.each(Object.entries(pages))('%s', (_, [page, expected, more]) => {
    const reading = read(page, { ...context, ...more });
    expect(brief(reading), reading.evidence.join('\n')).toBe(expected);
  });
});

test('the same page gives the same reading, with the same ids', () => {
  for (const [page, , more] of Object.values(pages)) {
    expect(read(page, { ...context, ...more })).toEqual(read(structuredClone(page), { ...context, ...more }));
  }
});

test('a page at the bounds of a snapshot is read without delay', () => {
  const parts = Array.from({ length: 400 }, (_, at) => [
    button('x'.repeat(200) + at, { type: 'button' }),
    words('log in '.repeat(40)),
  ]);
  expect(read(snapshot(parts), context).kind).toBeTypeOf('string');
});
