import { document, form, nameAndPassword, refusal, type GalleryPage, type Screen } from '../page.ts';

const plainLogin = (title: string, user: string, secret: string, send: string, refused: string): Screen => ({
  reads: 'login identifier:identifier password:password',
  submit: nameAndPassword('user', 'pass', refused),
  html: (view) =>
    document(
      view,
      title,
      `<div class="card"><h1>${title}</h1>${form(view, `<label>${user}<input name="user"></label><label>${secret}<input type="password" name="pass"></label>${refusal(view, '<p class="error">', '</p>')}<button>${send}</button>`)}</div>`,
    ),
});

const news = (count: number) =>
  Array.from({ length: count }, (_, at) => `<p><a href="#n${at}">Item ${at}</a></p>`).join('');
const overlay = 'position:fixed;inset:0;background:#0008;display:flex;align-items:center;justify-content:center';

/** Pages before a login, and layers over it. */
export const around: GalleryPage[] = [
  {
    name: 'landing-en',
    about: 'A landing page with a log-in link in its header, a search box and a newsletter.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'entry >entry',
        html: (view) =>
          document(
            view,
            'Acme',
            `<header><a href="${view.base}">Acme</a> <a href="#">Pricing</a> <a href="${view.base}/login">Log in</a> <a href="${view.base}/signup">Sign up free</a></header><form><input type="search" name="q" placeholder="Search"></form><h1>Work better</h1>${news(8)}<footer><form><label>Newsletter <input type="email" name="e"></label><button>Subscribe</button></form></footer>`,
          ),
      },
      login: plainLogin('Log in', 'Email', 'Password', 'Log in', 'These credentials do not match our records.'),
    },
  },
  {
    name: 'signup-first-fr',
    about: 'The start page is the sign-up form; a link leads to the login.',
    lang: 'fr',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      inscription: {
        reads: 'entry >entry',
        html: (view) =>
          document(
            view,
            'Créer un compte',
            `<div class="card"><h1>Créer un compte</h1><form method="post"><label>Prénom<input name="prenom"></label><label>E-mail<input name="email" type="email"></label><label>Mot de passe<input type="password" name="p1"></label><button>Créer mon compte</button></form><p>Déjà client ? <a href="${view.base}/connexion">Se connecter</a></p></div>`,
          ),
      },
      connexion: plainLogin(
        'Connexion',
        'E-mail',
        'Mot de passe',
        'Se connecter',
        'Adresse e-mail ou mot de passe invalide.',
      ),
    },
  },
  {
    name: 'cookies-de',
    about: 'A cookie banner lies over the login.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      anmelden: {
        reads: 'login identifier:identifier password:password >dismiss >dismiss',
        submit: nameAndPassword('user', 'pass', 'Die Anmeldedaten sind ungültig.'),
        html: (view) =>
          document(
            view,
            'Anmelden',
            `<div class="card"><h1>Anmelden</h1>${form(view, `<label>E-Mail<input name="user"></label><label>Passwort<input type="password" name="pass"></label>${refusal(view, '<p class="error">', '</p>')}<button>Anmelden</button>`)}</div>
          <div id="cc" style="${overlay}"><div style="background:#fff;padding:20px"><p>Wir verwenden Cookies, um unsere Website für Sie zu verbessern.</p><button type="button" class="btn" onclick="cc.remove()">Alle akzeptieren</button> <button type="button" class="btn" onclick="cc.remove()">Nur notwendige</button></div></div><script>const cc = document.getElementById('cc'); if (sessionStorage.cc) cc.remove(); cc.addEventListener('click', () => { sessionStorage.cc = 1; });</script>`,
          ),
      },
    },
  },
  {
    name: 'app-overlay-it',
    about: 'An overlay wants its app to be installed, over a page with a link to the login.',
    lang: 'it',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      home: {
        reads: 'entry >dismiss >entry',
        html: (view) =>
          document(
            view,
            'Giornale',
            `<header><a href="${view.base}/accedi">Accedi</a></header>${news(12)}<div id="o" role="dialog" style="${overlay}"><div style="background:#fff;padding:20px"><h2>Scarica l’app</h2><p>Leggi meglio nell’app.</p><button type="button" onclick="o.remove()">Non ora</button></div></div><script>const o = document.getElementById('o')</script>`,
          ),
      },
      accedi: plainLogin('Accedi', 'Email', 'Password', 'Accedi', 'Credenziali non valide.'),
    },
  },
  {
    name: 'newsletter-overlay-en',
    about: 'A newsletter overlay with a mail field lies over the login, and closes by a cross.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password >dismiss',
        submit: nameAndPassword('user', 'pass', 'The email or password is wrong.'),
        html: (view) =>
          document(
            view,
            'Sign in',
            `<div class="card"><h1>Sign in</h1>${form(view, `<label>Email<input name="user"></label><label>Password<input type="password" name="pass"></label>${refusal(view, '<p class="error">', '</p>')}<button>Sign in</button>`)}</div>
          <div class="modal" id="m" style="${overlay}"><div style="background:#fff;padding:20px"><button type="button" aria-label="Close" onclick="m.remove()">×</button><h2>10% off your first order</h2><p>Join our newsletter</p><input type="email" placeholder="Your email"><button type="button">Subscribe</button></div></div><script>const m = document.getElementById('m'); if (sessionStorage.m) m.remove(); m.addEventListener('click', () => { sessionStorage.m = 1; });</script>`,
          ),
      },
    },
  },
  {
    name: 'sso-choice-en',
    about: 'Providers first; the way by mail and password is one more button.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'choice (sso_google) (sso_microsoft) (sso_github) (method_email) >entry',
        html: (view) =>
          document(
            view,
            'Log in',
            `<div class="card"><h1>Log in to Acme</h1><a class="btn" href="${view.base}/auth/google">Continue with Google</a><br><a class="btn" href="${view.base}/auth/microsoft">Continue with Microsoft</a><br><a class="btn" href="${view.base}/auth/github">Continue with GitHub</a><br><a class="btn" href="${view.base}/email">Continue with email</a></div>`,
          ),
      },
      email: plainLogin('Log in with email', 'Email', 'Password', 'Log in', 'Invalid login.'),
    },
  },
  {
    name: 'account-type-tr',
    about: 'A choice of the kind of customer before the form.',
    lang: 'tr',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      giris: {
        reads: 'choice (method_bireysel) (method_kurumsal)',
        html: (view) =>
          document(
            view,
            'Giriş',
            `<div class="card"><h1>Giriş yap</h1><p>Lütfen seçin</p><a class="btn tile" style="display:block;padding:20px" href="${view.base}/bireysel">Bireysel müşteri</a><a class="btn tile" style="display:block;padding:20px" href="${view.base}/kurumsal">Kurumsal müşteri</a></div>`,
          ),
      },
      bireysel: plainLogin('Bireysel giriş', 'Kullanıcı adı', 'Şifre', 'Giriş yap', 'Kullanıcı adı veya şifre yanlış.'),
      kurumsal: plainLogin('Kurumsal giriş', 'Kullanıcı adı', 'Şifre', 'Giriş yap', 'Kullanıcı adı veya şifre yanlış.'),
    },
  },
  {
    name: 'place-fi',
    about: 'A select for the school, then the form.',
    lang: 'fi',
    outcome: { right: 'success', wrong: 'credentials', needs: ['tenant'] },
    screens: {
      kirjaudu: {
        reads: 'login tenant:text',
        submit: ({ organisaatio }) =>
          organisaatio === 'acme' ? { to: 'tunnus' } : { refused: 'Valitse organisaatio' },
        html: (view) =>
          document(
            view,
            'Kirjaudu sisään',
            `<div class="card"><h1>Kirjaudu sisään</h1>${form(view, `<label>Organisaatio<select name="organisaatio"><option value="">Valitse…</option><option value="acme">Acme</option><option value="muu">Muu</option></select></label>${refusal(view, '<p class="virhe">', '</p>')}<button>Jatka</button>`)}</div>`,
          ),
      },
      tunnus: {
        ...plainLogin(
          'Kirjaudu sisään',
          'Käyttäjätunnus',
          'Salasana',
          'Kirjaudu',
          'Virheellinen käyttäjätunnus tai salasana.',
        ),
        after: ['kirjaudu'],
      },
    },
  },
];
