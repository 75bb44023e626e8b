import { document, form, isPerson, knows, refusal, type Answer, type GalleryPage, type Screen } from '../page.ts';

const first = (
  to: string,
  texts: { title: string; user: string; secret: string; send: string; refused: string },
): Screen => ({
  reads: 'login identifier:identifier password:password',
  submit: (values): Answer => (isPerson(values['user']) && knows(values['pass']) ? { to } : { refused: texts.refused }),
  html: (view) =>
    document(
      view,
      texts.title,
      `<div class="card"><h1>${texts.title}</h1>${form(view, `<label>${texts.user}<input name="user"></label><label>${texts.secret}<input type="password" name="pass"></label>${refusal(view, '<div class="alert-danger">')}<button>${texts.send}</button>`)}</div>`,
    ),
});

const english = {
  title: 'Sign in',
  user: 'Username',
  secret: 'Password',
  send: 'Sign in',
  refused: 'Invalid credentials.',
};
const german = {
  title: 'Anmelden',
  user: 'Benutzername',
  secret: 'Passwort',
  send: 'Anmelden',
  refused: 'Falscher Benutzername oder falsches Passwort.',
};

/** A screen after the password whose form lets the person in, by whichever button. */
const between = (
  reads: string,
  title: string,
  inner: string,
  submit: Screen['submit'] = () => ({ in: true }),
): Screen => ({
  reads,
  submitted: ['password'],
  after: ['start'],
  ...(submit === undefined ? {} : { submit }),
  html: (view) =>
    document(
      view,
      title,
      `<div class="card"><h1>${title}</h1>${refusal(view, '<p class="error">', '</p>')}${form(view, inner)}</div>`,
    ),
});

/** Pages between the password and the application. */
export const demanding: GalleryPage[] = [
  {
    name: 'stay-en',
    about: 'Asks whether to stay signed in.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('stay', english),
      stay: between(
        'interstitial >stay_signed_in',
        'Stay signed in?',
        '<p>Do this to reduce the number of times you are asked to sign in.</p><label><input type="checkbox" name="dont"> Don’t show this again</label><button name="a" value="no" class="btn">No</button> <button name="a" value="yes" class="btn">Yes</button>',
      ),
    },
  },
  {
    name: 'consent-en',
    about: 'An application asks for consent before it lets the person in.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('consent', english),
      consent: between(
        'interstitial >accept',
        'Authorize Example App',
        '<p>Example App would like to access your profile and your email address.</p><button name="a" value="no" class="btn">Cancel</button> <button name="a" value="yes" class="btn">Authorize</button>',
        ({ a }) => (a === 'yes' ? { in: true } : { refused: 'You did not consent.' }),
      ),
    },
  },
  {
    name: 'terms-de',
    about: 'New terms have to be ticked and accepted.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('agb', german),
      agb: between(
        'interstitial >accept! >accept',
        'Unsere Nutzungsbedingungen haben sich geändert',
        '<p>Bitte lesen Sie die neuen Bedingungen.</p><label><input type="checkbox" name="agb"> Ich habe die Nutzungsbedingungen gelesen und stimme zu</label><p><button class="btn">Weiter</button></p>',
        ({ agb }) => (agb === 'on' ? { in: true } : { refused: 'Bitte stimmen Sie zu.' }),
      ),
    },
  },
  {
    name: 'set-up-en',
    about: 'Wants a second factor to be set up, which can be put off.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('protect', english),
      protect: between(
        'interstitial >skip',
        'Protect your account',
        '<p>Add two-factor authentication to keep your account safe.</p><button name="a" value="set" class="btn">Set up now</button> <button name="a" value="skip" class="btn">Remind me later</button>',
        ({ a }) => (a === 'skip' ? { in: true } : { refused: 'This cannot be set up here.' }),
      ),
    },
  },
  {
    name: 'expired-de',
    about: 'The password is about to expire; changing it can be skipped.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('wechsel', german),
      wechsel: between(
        'interstitial >skip',
        'Ihr Passwort läuft bald ab',
        '<label>Neues Passwort<input type="password" name="n1"></label><label>Passwort wiederholen<input type="password" name="n2"></label><button name="a" value="set" class="btn">Passwort ändern</button> <button name="a" value="skip" class="btn">Überspringen</button>',
        ({ a }) => (a === 'skip' ? { in: true } : { refused: 'Das Passwort ist zu kurz.' }),
      ),
    },
  },
  {
    name: 'must-change-en',
    about: 'The password has to be changed, and there is no way past.',
    lang: 'en',
    outcome: { right: 'unsupported', wrong: 'credentials' },
    screens: {
      start: first('change', english),
      change: between(
        'change_password current_password:password new_password:password confirm_password:password',
        'Your password has expired',
        '<label>Current password<input type="password" name="o"></label><label>New password<input type="password" name="n1"></label><label>Confirm new password<input type="password" name="n2"></label><button class="btn">Change password</button>',
        () => ({ refused: 'The new password was used before.' }),
      ),
    },
  },
  {
    name: 'enrol-en',
    about: 'Demands that an authenticator app be set up: a secret and a field for its first code.',
    lang: 'en',
    outcome: { right: 'unsupported', wrong: 'credentials' },
    screens: {
      start: first('enrol', english),
      enrol: between(
        'enrol_totp code:totp_code',
        'Mobile Authenticator Setup',
        '<ol><li>Install an authenticator app.</li><li>Scan the QR code, or enter this key: <code>KRSX G5CT MVRX EZLU</code></li></ol><label>One-time code<input name="totp" autocomplete="off"></label><button class="btn">Submit</button>',
        () => ({ refused: 'Invalid authenticator code.' }),
      ),
    },
  },
  {
    name: 'passkey-promotion-ja',
    about: 'Offers a passkey after the login, or later.',
    lang: 'ja',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: first('passkey', {
        title: 'ログイン',
        user: 'ユーザー名',
        secret: 'パスワード',
        send: 'ログイン',
        refused: 'ユーザー名またはパスワードが違います',
      }),
      passkey: between(
        'interstitial >skip',
        'パスキーを作成しますか？',
        '<p>次回から簡単にログインできます。</p><button name="a" value="make" class="btn">作成</button> <button name="a" value="skip" class="btn">後で</button>',
        ({ a }) => (a === 'skip' ? { in: true } : { refused: '失敗しました' }),
      ),
    },
  },
  {
    name: 'push-es',
    about: 'Waits for an approval on the phone, with another way.',
    lang: 'es',
    outcome: { right: 'external', wrong: 'credentials' },
    screens: {
      start: first('push', {
        title: 'Iniciar sesión',
        user: 'Usuario',
        secret: 'Contraseña',
        send: 'Acceder',
        refused: 'Usuario o contraseña incorrectos.',
      }),
      push: between(
        'external (mfa_switch)',
        'Aprueba el inicio de sesión',
        '<p>Abre la app en tu teléfono y toca Aprobar para continuar.</p><button name="a" value="other" class="btn">Usar otro método</button>',
        () => ({ refused: 'No hay otro método.' }),
      ),
    },
  },
  {
    name: 'magic-link-en',
    about: 'Sends a link by mail after the identifier.',
    lang: 'en',
    outcome: { right: 'external' },
    screens: {
      start: {
        reads: 'login identifier:identifier',
        submit: ({ email }) => (isPerson(email) ? { to: 'sent' } : { refused: 'We could not find this address.' }),
        html: (view) =>
          document(
            view,
            'Log in',
            `<div class="card"><h1>Log in</h1>${form(view, `<label>Email<input type="email" name="email"></label>${refusal(view, '<p class="error">', '</p>')}<button>Email me a login link</button>`)}</div>`,
          ),
      },
      sent: {
        reads: 'external',
        submitted: ['identifier'],
        after: ['start'],
        html: (view) =>
          document(
            view,
            'Check your email',
            '<div class="card"><h1>Check your email</h1><p>We sent a login link to a•••@shop.example. It expires in 15 minutes.</p><a href="#">Resend email</a></div>',
          ),
      },
    },
  },
];
