import { Secret, TOTP } from 'otpauth';
import { document, form, isPerson, knows, person, refusal, type GalleryPage, type Screen } from '../page.ts';

/** The code of an authenticator app, now or a moment ago. */
function isTotp(code: string | undefined): boolean {
  const totp = new TOTP({ secret: Secret.fromBase32(person.totpSecret) });
  return totp.validate({ token: (code ?? '').replace(/\s/g, ''), window: 1 }) !== null;
}

const sentCode = (values: Record<string, string>, refused: string) =>
  (values['code'] ?? '') === person.code ? { in: true as const } : { refused };

const password = (heading: string, label: string, send: string, refused: string, to?: string): Screen => ({
  reads: 'login password:password',
  submitted: ['identifier'],
  after: ['start'],
  submit: (values) => (knows(values['password']) ? (to === undefined ? { in: true } : { to }) : { refused }),
  html: (view) =>
    document(
      view,
      heading,
      `<div class="card"><h1>${heading}</h1><p>${person.email}</p>${form(view, `<label for="pw">${label}</label><input id="pw" type="password" name="password" autocomplete="current-password" autofocus>${refusal(view, '<div role="alert" id="e">')}<button>${send}</button>`)}</div>`,
    ),
});

/** Logins in several steps, with and without a second factor. */
export const steps: GalleryPage[] = [
  {
    name: 'identifier-first-en',
    about: 'The identifier first, then the password; an unknown identifier is refused at once.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'login identifier:identifier',
        submit: ({ identifier }) =>
          isPerson(identifier) ? { to: 'password' } : { refused: "Couldn't find your account" },
        html: (view) =>
          document(
            view,
            'Sign in',
            `<div class="card"><h1>Sign in</h1><p>to continue to Mail</p>${form(view, `<input type="email" name="identifier" autocomplete="username webauthn" aria-label="Email or phone">${refusal(view, '<div aria-live="assertive"><span>', '</span></div>')}<input type="password" name="hiddenPassword" style="position:absolute;left:-9999px" tabindex="-1" aria-hidden="true"><a href="${view.base}/f">Forgot email?</a> <a href="${view.base}/c">Create account</a> <button>Next</button>`)}</div>`,
          ),
      },
      password: password(
        'Welcome',
        'Enter your password',
        'Next',
        'Wrong password. Try again or click Forgot password to reset it.',
      ),
    },
  },
  {
    name: 'identifier-first-sv',
    about: 'A shop that asks for the mail address first, in a page of its own, without the word log in on the button.',
    lang: 'sv',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'login identifier:identifier',
        submit: ({ epost }) =>
          isPerson(epost) ? { to: 'password' } : { refused: 'Vi hittar inget konto. Fel e-postadress?' },
        html: (view) =>
          document(
            view,
            'Logga in eller skapa konto',
            `<div class="card"><h1>Logga in eller skapa konto</h1>${form(view, `<label>E-postadress<input type="email" name="epost"></label>${refusal(view, '<p class="form__error">', '</p>')}<button>Fortsätt</button>`)}</div>`,
          ),
      },
      password: password('Välkommen tillbaka', 'Lösenord', 'Logga in', 'Fel lösenord.'),
    },
  },
  {
    name: 'three-steps-de',
    about: 'Company, then identifier, then password.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials', needs: ['tenant'] },
    screens: {
      firma: {
        reads: 'login tenant:text',
        submit: ({ firma }) => (firma === person.tenant ? { to: 'start' } : { refused: 'Diese Firma ist unbekannt.' }),
        html: (view) =>
          document(
            view,
            'Anmelden',
            `<div class="card"><h1>Bei Ihrem Unternehmen anmelden</h1>${form(view, `<label>Firmen-ID<input name="firma" required></label>${refusal(view, '<p class="fehler">', '</p>')}<button>Weiter</button>`)}</div>`,
          ),
      },
      start: {
        reads: 'login identifier:identifier',
        submitted: ['identifier'],
        after: ['firma'],
        submit: ({ nutzer }) => (isPerson(nutzer) ? { to: 'password' } : { refused: 'Benutzer nicht gefunden.' }),
        html: (view) =>
          document(
            view,
            'Anmelden',
            `<div class="card"><h1>Anmelden bei Acme</h1>${form(view, `<label>Benutzername<input name="nutzer"></label>${refusal(view, '<p class="fehler">', '</p>')}<button>Weiter</button>`)}</div>`,
          ),
      },
      password: password('Kennwort eingeben', 'Kennwort', 'Anmelden', 'Das Kennwort ist falsch.'),
    },
  },
  {
    name: 'totp-en',
    about: 'Password, then the code of an authenticator app in one box, with a recovery code as the other way.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials', needs: ['totp'] },
    screens: {
      start: {
        reads: 'login identifier:identifier password:password',
        submit: (values) =>
          isPerson(values['login']) && knows(values['password'])
            ? { to: 'two-factor' }
            : { refused: 'Incorrect username or password.' },
        html: (view) =>
          document(
            view,
            'Sign in',
            `<div class="card">${refusal(view, '<div class="flash flash-full flash-error">')}${form(view, `<label for="l">Username or email address</label><input id="l" name="login" autocomplete="username"><label for="p">Password</label><input id="p" name="password" type="password" autocomplete="current-password"><input type="submit" value="Sign in">`)}</div>`,
          ),
      },
      'two-factor': {
        reads: 'code code:totp_code (mfa_other)',
        submitted: ['password'],
        after: ['start'],
        submit: ({ otp }) => (isTotp(otp) ? { in: true } : { refused: 'Two-factor authentication failed.' }),
        html: (view) =>
          document(
            view,
            'Two-factor authentication',
            `<div class="card"><h1>Two-factor authentication</h1>${refusal(view, '<div class="flash flash-error">')}${form(view, `<label for="otp">Authentication code</label><input id="otp" name="otp" inputmode="numeric" placeholder="XXXXXX" autocomplete="one-time-code"><button>Verify</button><p>Open your two-factor authenticator (TOTP) app or browser extension to view your authentication code.</p>`)}<a href="${view.base}/recovery">Use a recovery code</a></div>`,
          ),
      },
    },
  },
  {
    name: 'six-boxes-fr',
    about: 'A code by mail in six boxes that jump by script; no button, the last digit sends.',
    lang: 'fr',
    outcome: { right: 'success', wrong: 'credentials', needs: ['code'] },
    screens: {
      start: {
        reads: 'login identifier:identifier password:password',
        submit: (values) =>
          isPerson(values['email']) && knows(values['password'])
            ? { to: 'code' }
            : { refused: 'Identifiants invalides' },
        html: (view) =>
          document(
            view,
            'Identifiez-vous',
            `<div class="card"><h1>Identifiez-vous</h1>${form(view, `<label>E-mail<input name="email" type="email"></label><label>Mot de passe<input name="password" type="password"></label>${refusal(view, '<small class="invalid-feedback">', '</small>')}<button>Continuer</button>`)}</div>`,
          ),
      },
      code: {
        reads: 'code code:code×6',
        submitted: ['password'],
        after: ['start'],
        submit: (values) => sentCode(values, 'Code incorrect'),
        html: (view) =>
          document(
            view,
            'Vérification',
            `<div class="card"><h1>Vérification</h1><p>Nous avons envoyé un code à 6 chiffres à a***@shop.example.</p>${refusal(view, '<p role="alert">', '</p>')}${form(
              view,
              `<input type="hidden" name="code">${Array.from({ length: 6 }, (_, at) => `<input class="digit" style="display:inline-block;width:36px;height:44px;margin:2px;text-align:center" maxlength="1" inputmode="numeric" aria-label="Chiffre ${at + 1}">`).join('')}`,
            )}<a href="#">Renvoyer le code</a></div><script>
            const digits = [...document.querySelectorAll('.digit')];
            digits.forEach((digit, at) => digit.addEventListener('input', () => {
              if (digit.value !== '') digits[at + 1]?.focus();
              const code = digits.map((one) => one.value).join('');
              if (code.length === 6) { document.forms[0].elements.code.value = code; document.forms[0].submit(); }
            }));</script>`,
          ),
      },
    },
  },
  {
    name: 'factors-en',
    about: 'After the password a list of second factors to choose from, then a code by SMS.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials', needs: ['code'] },
    screens: {
      start: {
        reads: 'login identifier:identifier password:password',
        submit: (values) =>
          isPerson(values['u']) && knows(values['p']) ? { to: 'choose' } : { refused: 'Unable to sign in' },
        html: (view) =>
          document(
            view,
            'Sign In',
            `<div class="card">${refusal(view, '<div class="o-form-error-container"><p>', '</p></div>')}${form(view, `<label>Username<input name="u"></label><label>Password<input type="password" name="p"></label><input type="submit" value="Sign In">`)}</div>`,
          ),
      },
      choose: {
        reads: 'choice (mfa_sms) (mfa_email) (mfa_other)',
        submitted: ['password'],
        after: ['start'],
        submit: ({ factor }) => (factor === 'sms' ? { to: 'code' } : { refused: 'This factor is not available.' }),
        html: (view) =>
          document(
            view,
            'Verify it’s you',
            `<div class="card"><h1>Verify it’s you with a security method</h1>${form(view, `<button class="btn" name="factor" value="sms">Text message to +49 ••• •• 42</button><br><button class="btn" name="factor" value="mail">Email to a•••a@shop.example</button><br><button class="btn" name="factor" value="key">Security key or biometric</button>`)}</div>`,
          ),
      },
      code: {
        reads: 'code code:code (mfa_switch)',
        submitted: ['choice'],
        after: ['start', 'choose'],
        submit: (values) => sentCode(values, 'Your code doesn’t match our records. Please try again.'),
        html: (view) =>
          document(
            view,
            'Verify with your phone',
            `<div class="card"><h1>Verify with your phone</h1><p>A code was sent to +49 ••• •• 42. Enter the code below to verify.</p>${form(view, `<label>Enter Code<input name="code" type="tel" autocomplete="off"></label>${refusal(view, '<div class="infobox infobox-error" role="alert">')}<input type="submit" value="Verify">`)}<a href="${view.base}/choose">Verify with something else</a></div>`,
          ),
      },
    },
  },
  {
    name: 'factors-radio-pt',
    about: 'Second factors as radio buttons with a button to send the code.',
    lang: 'pt',
    outcome: { right: 'success', wrong: 'credentials', needs: ['code'] },
    screens: {
      start: {
        reads: 'login identifier:identifier password:password',
        submit: (values) =>
          isPerson(values['cpf']) && knows(values['senha'])
            ? { to: 'escolha' }
            : { refused: 'Usuário ou senha incorretos' },
        html: (view) =>
          document(
            view,
            'Entrar',
            `<div class="card"><h1>Entrar</h1>${form(view, `<label>CPF, e-mail ou usuário<input name="cpf"></label><label>Senha<input type="password" name="senha"></label>${refusal(view, '<span class="erro">', '</span>')}<button>Acessar</button>`)}</div>`,
          ),
      },
      escolha: {
        reads: 'choice (mfa_sms) (mfa_email)',
        submitted: ['password'],
        after: ['start'],
        submit: ({ via }) => (via === 'sms' || via === 'mail' ? { to: 'code' } : { refused: 'Escolha uma opção' }),
        html: (view) =>
          document(
            view,
            'Confirme sua identidade',
            `<div class="card"><h1>Confirme sua identidade</h1><p>Como deseja receber o código?</p>${form(view, `<p><label><input type="radio" name="via" value="sms"> SMS para (**) *****-**42</label></p><p><label><input type="radio" name="via" value="mail"> E-mail para a**@shop.example</label></p><button>Enviar código</button>`)}</div>`,
          ),
      },
      code: {
        reads: 'code code:code',
        submitted: ['choice'],
        after: ['start', 'escolha'],
        submit: (values) => sentCode(values, 'Código inválido'),
        html: (view) =>
          document(
            view,
            'Digite o código',
            `<div class="card"><h1>Digite o código</h1><p>Enviamos um código para o seu celular.</p>${form(view, `<input name="code" placeholder="Código de 6 dígitos" maxlength="6">${refusal(view, '<p class="erro">', '</p>')}<button>Confirmar</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'sms-zh',
    about: 'A code by SMS is offered first; a tab leads to the password.',
    lang: 'zh',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      sms: {
        reads: 'login identifier:identifier code:code (method_password) >tab',
        html: (view) =>
          document(
            view,
            '登录',
            `<div class="card"><div role="tablist"><button role="tab" aria-selected="true">短信登录</button><a role="tab" aria-selected="false" href="${view.base}/start">密码登录</a></div>${form(view, `<input name="phone" placeholder="请输入手机号"><input name="code" placeholder="请输入验证码"><button type="button">获取验证码</button><button>登录</button>`)}</div>`,
          ),
      },
      start: {
        reads: 'login identifier:identifier password:password (method_sms)',
        submit: (values) =>
          isPerson(values['account']) && knows(values['password']) ? { in: true } : { refused: '用户名或密码不正确' },
        html: (view) =>
          document(
            view,
            '登录',
            `<div class="card"><div role="tablist"><a role="tab" aria-selected="false" id="sms" href="${view.base}/sms">短信登录</a><button role="tab" aria-selected="true">密码登录</button></div>${form(view, `<input name="account" placeholder="用户名/邮箱/手机号"><input name="password" type="password" placeholder="密码">${refusal(view, '<div class="toast">')}<button>登录</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'accounts-en',
    about: 'An account picker before the password.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'choice (account) (account_2) (account_other)',
        submit: ({ account }) => (isPerson(account) ? { to: 'password' } : { refused: 'This account is gone.' }),
        html: (view) =>
          document(
            view,
            'Pick an account',
            `<div class="card"><h1>Pick an account</h1>${form(view, `<button class="btn" name="account" value="${person.email}">Ada<br>${person.email}</button><button class="btn" name="account" value="b@shop.example">Bob<br>bob@shop.example</button><button class="btn" name="account" value="">Use another account</button>`)}</div>`,
          ),
      },
      password: password('Enter password', 'Password', 'Sign in', 'Your account or password is incorrect.'),
    },
  },
];
