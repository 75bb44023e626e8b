import { insidePage, type LoginCase, type Site, type Visit } from '../site.ts';

/** Logins with something in the way, before or after. */
export const obstacles: LoginCase[] = [
  {
    name: 'italian-cookie-wall',
    language: 'it',
    about: 'a wall of cookies lies over the form and keeps clicks and keys from it until it is answered',
    account: { username: 'giulia@esempio.example', password: 'Vesuvio!79' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('Ciao Giulia', 'Esci'));
      if (visit.path === '/consenso') return visit.goOn('consent', '/');
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST' && visit.state['consent']) {
        if (site.knows(visit.form['mail'], visit.form['pwd'])) return visit.enter('/');
        error = '<p class="errore">E-mail o password non corretti</p>';
      }
      const wall = visit.state['consent']
        ? ''
        : `<div style="position:fixed;inset:0;background:rgba(0,0,0,.7);z-index:99"><div role="dialog" aria-modal="true" style="background:#fff;margin:10% auto;width:440px;padding:20px">
           <h2>La tua privacy è importante</h2><p>Noi e i nostri 843 partner usiamo i cookie.</p>
           <a href="/preferenze">Personalizza</a> <form method="post" action="/consenso" style="display:inline"><button name="c" value="tutti">Accetta e continua</button></form></div></div>`;
      visit.html(`<main ${visit.state['consent'] ? '' : 'inert'}><h1>Accedi</h1>${error}<form method="post">
        <label>E-mail <input name="mail" type="email"></label><label>Password <input name="pwd" type="password"></label><button>Accedi</button></form></main>${wall}`);
    },
  },
  {
    name: 'dutch-stay-signed-in',
    language: 'nl',
    about: 'asks after the password whether to stay signed in, and only then is the user in',
    account: { username: 'sanne', password: 'Grachten_020' },
    ends: 'logged in',
    serve: (visit, site) =>
      afterPassword(visit, site, {
        title: 'Aanmelden',
        user: 'Gebruikersnaam',
        password: 'Wachtwoord',
        submit: 'Aanmelden',
        wrong: 'Onjuiste gebruikersnaam of wachtwoord.',
        hello: 'Welkom, Sanne',
        logout: 'Afmelden',
        between:
          '<h1>Aangemeld blijven?</h1><p>Zo hoeft u zich minder vaak aan te melden.</p><form method="post"><label><input type="checkbox"> Niet meer tonen</label><button name="a" value="nee">Nee</button><button name="a" value="ja">Ja</button></form>',
        passes: () => true,
      }),
  },
  {
    name: 'polish-password-change',
    language: 'pl',
    about: 'suggests a new password after the login; the way past it is a link',
    account: { username: 'kasia', password: 'Pierogi-Ruskie' },
    ends: 'logged in',
    serve: (visit, site) =>
      afterPassword(visit, site, {
        title: 'Logowanie',
        user: 'Nazwa użytkownika',
        password: 'Hasło',
        submit: 'Zaloguj',
        wrong: 'Błędna nazwa użytkownika lub hasło',
        hello: 'Witaj, Kasiu',
        logout: 'Wyloguj',
        between:
          '<h1>Zmień hasło</h1><p>Twoje hasło ma już ponad rok.</p><form method="post" action="/zmien"><label>Obecne hasło <input type="password" name="o"></label><label>Nowe hasło <input type="password" name="n" autocomplete="new-password"></label><label>Powtórz hasło <input type="password" name="r"></label><button>Zapisz</button></form><a href="/dalej?pomin=1">Przypomnij później</a>',
        passes: (visit) => visit.query.get('pomin') === '1',
      }),
  },
  {
    name: 'english-enrol-later',
    language: 'en',
    about: 'wants two-factor to be set up; the way past it is a button of little weight',
    account: { username: 'alex@forge.example', password: 'Anvil&Hammer' },
    ends: 'logged in',
    serve: (visit, site) =>
      afterPassword(visit, site, {
        title: 'Forge',
        user: 'Username or email',
        password: 'Password',
        submit: 'Sign in',
        wrong: 'Incorrect username or password.',
        hello: 'Repositories',
        logout: 'Sign out',
        between:
          '<h1>Secure your account with two-factor authentication</h1><p>Scan this code with your authenticator app, then enter the code it shows.</p><svg width="120" height="120" role="img" aria-label="QR code"><rect width="120" height="120"/></svg><p>Or use the key <code>KRSX G5BA ONSW G4TF</code></p><form method="post" action="/enrol"><input name="code" placeholder="6-digit code"><button>Enable</button></form><form method="post"><button style="border:0;background:none" name="later" value="1">Not now</button></form>',
        passes: (visit) => visit.form['later'] === '1',
      }),
  },
  {
    name: 'vietnamese-terms',
    language: 'vi',
    about: 'new terms have to be ticked and accepted after the login',
    account: { username: 'linh', password: 'PhoBo-2023' },
    ends: 'logged in',
    serve: (visit, site) =>
      afterPassword(visit, site, {
        title: 'Đăng nhập',
        user: 'Tên đăng nhập',
        password: 'Mật khẩu',
        submit: 'Đăng nhập',
        wrong: 'Tên đăng nhập hoặc mật khẩu không đúng',
        hello: 'Xin chào Linh',
        logout: 'Đăng xuất',
        between:
          '<h1>Điều khoản sử dụng đã thay đổi</h1><div style="height:80px;overflow:auto">Điều 1. …</div><form method="post"><label><input type="checkbox" name="ok" value="1" required> Tôi đồng ý với điều khoản</label><button>Tiếp tục</button></form>',
        passes: (visit) => visit.form['ok'] === '1',
      }),
  },
  {
    name: 'spanish-signup-tab',
    language: 'es',
    about: 'opens on the tab for new customers; the login is the other tab; tabs are plain elements',
    account: { username: 'lucia@ejemplo.example', password: 'Alhambra 1492' },
    ends: 'logged in',
    cookie: { name: 'sesion', maxAge: 3600 },
    serve(visit, site) {
      if (visit.state.user && visit.path === '/')
        return visit.inside(insidePage('Mi cuenta', 'Cerrar sesión', '<p>Hola, Lucía</p>'));
      let [error, open] = ['', 'alta'];
      if (visit.path === '/alta') return visit.html('<p>Gracias por registrarte</p>');
      if (visit.path === '/acceso' && visit.method === 'POST') {
        if (site.knows(visit.form['correo'], visit.form['clave'])) return visit.enter('/');
        [error, open] = ['<div class="aviso-error">Correo o contraseña incorrectos</div>', 'acceso'];
      } else if (visit.path !== '/') return;
      visit.html(`<style>.oculto{display:none}.tab{cursor:pointer;padding:8px}</style><div><span class="tab" data-t="alta">Soy nuevo</span><span class="tab" data-t="acceso">Ya tengo cuenta</span></div>
        <form class="panel" id="alta" method="post" action="/alta"><input name="nombre" placeholder="Nombre"><input name="correo" type="email" placeholder="Correo electrónico"><input name="clave" type="password" autocomplete="new-password" placeholder="Crea una contraseña"><button>Crear cuenta</button></form>
        <form class="panel" id="acceso" method="post" action="/acceso">${error}<input name="correo" type="email" placeholder="Correo electrónico"><input name="clave" type="password" placeholder="Contraseña"><button>Entrar</button></form>
        <script>function ver(t) { document.querySelectorAll('.panel').forEach((p) => p.classList.toggle('oculto', p.id !== t)); }
        document.querySelectorAll('.tab').forEach((t) => t.addEventListener('click', () => ver(t.dataset.t))); ver('${open}');</script>`);
    },
  },
  {
    name: 'hungarian-busy',
    language: 'hu',
    about: 'polls and animates without end, moves on by meta refresh, and takes seconds to answer a submit',
    account: { username: 'bela', password: 'Gulyás+Leves' },
    ends: 'logged in',
    async serve(visit, site) {
      if (visit.path === '/ora') return visit.json({ now: Date.now() });
      if (visit.path === '/')
        return visit.state.user
          ? visit.inside(insidePage('Üdv, Béla', 'Kijelentkezés', ticker))
          : visit.html('<p>Egy pillanat…</p>', { head: '<meta http-equiv="refresh" content="1;url=/kapu">' });
      if (visit.path !== '/kapu') return;
      let error = '';
      if (visit.method === 'POST') {
        await new Promise((resolve) => setTimeout(resolve, 4000));
        if (site.knows(visit.form['nev'], visit.form['jelszo'])) {
          visit.logIn();
          const head = '<meta http-equiv="refresh" content="2;url=/">';
          return visit.html('<p>Bejelentkezés folyamatban…</p>', { head });
        }
        error = '<b>Hibás név vagy jelszó!</b>';
      }
      visit.html(
        `${ticker}<h1>Bejelentkezés</h1>${error}<form method="post">Név: <input name="nev"> Jelszó: <input type="password" name="jelszo"> <button>Belépés</button></form>`,
      );
    },
  },
  {
    name: 'english-overlay-late',
    language: 'en',
    about: 'an offer slides over the form two seconds after the page came up, and its cross has no text',
    account: { username: 'pat@garden.example', password: 'Rosebush22' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('My garden', 'Log out'));
      if (visit.path === '/')
        return visit.html(
          '<h1>Garden supplies</h1><nav><a href="/shop">Shop</a> <a href="/join">Join free</a> <a href="/signin"><svg aria-hidden="true" width="12" height="12"></svg><span>Account</span></a></nav>',
        );
      if (visit.path !== '/signin') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['e'], visit.form['p'])) return visit.enter('/');
        error = '<p class="notice is-danger">Sorry, we do not recognise those details.</p>';
      }
      visit.html(`<h1>Your account</h1>${error}<form method="post"><p><input name="e" type="text" placeholder="Email address"></p><p><input name="p" type="password" placeholder="Password"></p><button>Continue</button></form>
        <div id="offer" style="display:none;position:fixed;inset:0;background:rgba(255,255,255,.95);z-index:5"><div style="margin:60px"><button class="x" aria-label="" onclick="offer.remove()" style="float:right">✕</button><h2>10% off your first order</h2><form onsubmit="return false"><input type="email" placeholder="Email for your code"><button>Claim</button></form></div></div>
        <script>setTimeout(() => { offer.style.display = 'block'; }, 2000)</script>`);
    },
  },
];

const ticker = `<div id="tick">0</div><style>@keyframes r{to{transform:rotate(1turn)}}#w{width:20px;height:20px;background:#0a0;animation:r 1s infinite linear}</style><div id="w"></div>
<script>setInterval(async () => { tick.textContent = (await (await fetch('/ora')).json()).now; }, 400)</script>`;

interface Words {
  title: string;
  user: string;
  password: string;
  submit: string;
  wrong: string;
  hello: string;
  logout: string;
  /** The page between the password and the inside. */
  between: string;
  passes(visit: Visit): boolean;
}

/** A login page with a page after it, at `/dalej`, without which the user is not in. */
function afterPassword(visit: Visit, site: Site, words: Words): void {
  if (visit.path === '/') {
    if (visit.state.user) return visit.inside(insidePage(words.hello, words.logout));
    if (visit.state['passed']) return visit.redirect('/dalej');
    let error = '';
    if (visit.method === 'POST') {
      if (site.knows(visit.form['username'], visit.form['password'])) {
        visit.state['passed'] = true;
        return visit.redirect('/dalej');
      }
      error = `<div class="error-message">${words.wrong}</div>`;
    }
    return visit.html(
      `<h1>${words.title}</h1>${error}<form method="post"><p><label for="u">${words.user}</label> <input id="u" name="username"></p>
       <p><label for="p">${words.password}</label> <input id="p" type="password" name="password"></p><p><button>${words.submit}</button></p></form>`,
      { title: words.title },
    );
  }
  if (visit.path !== '/dalej' || !visit.state['passed']) return;
  const asked = visit.method === 'POST' || visit.query.size > 0;
  if (asked && words.passes(visit)) {
    visit.logIn();
    return visit.redirect('/');
  }
  visit.html(words.between, { title: words.title });
}
