import { document, form, isPerson, knows, nameAndPassword, person, refusal, type GalleryPage } from '../page.ts';

/** Identifier and password on one page, as servers have rendered them for decades. */
export const classic: GalleryPage[] = [
  {
    name: 'plain-en',
    about: 'A form with labels, and the error in a paragraph above it.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('username', 'password', 'Invalid username or password.'),
        html: (view) =>
          document(
            view,
            'Log in',
            `<div class="card"><h1>Log in</h1>${refusal(view, '<p class="error">', '</p>')}${form(
              view,
              `<label for="u">Username</label><input id="u" name="username"><label for="p">Password</label><input id="p" name="password" type="password">
              <label><input type="checkbox" name="remember"> Remember me</label><button>Log in</button>`,
            )}<a href="${view.base}/forgot">Forgot your password?</a></div>`,
          ),
      },
    },
  },
  {
    name: 'table-de',
    about: 'Labels in cells of a table that belong to no field; the error is a red row of the table.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('f1', 'f2', 'Benutzername oder Kennwort ist falsch.'),
        html: (view) =>
          document(
            view,
            'Anmeldung',
            form(
              view,
              `<table><tr><th colspan=2>Anmeldung</th></tr>${refusal(view, '<tr><td colspan=2><font color=red>', '</font></td></tr>')}
              <tr><td>Benutzerkennung:</td><td><input name="f1" size=20></td></tr><tr><td>Kennwort:</td><td><input type=password name="f2" size=20></td></tr>
              <tr><td></td><td><input type=submit value="Anmelden"> <input type=reset value="Zurücksetzen"></td></tr></table>`,
            ),
          ),
      },
    },
  },
  {
    name: 'bootstrap-fr',
    about: 'Bootstrap: an alert, floating labels, a sign-up link and a language picker.',
    lang: 'fr',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      connexion: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('user[email]', 'user[password]', 'Identifiant ou mot de passe incorrect.'),
        html: (view) =>
          document(
            view,
            'Connexion · Boutique',
            `<nav><select name="locale" onchange="this.form"><option>Français</option><option>English</option><option>Deutsch</option></select></nav>
            <main class="card">${refusal(view, '<div class="alert alert-danger" role="alert">')}${form(
              view,
              `<div class="form-floating"><input type="email" class="form-control" id="user_email" name="user[email]" placeholder="nom@exemple.fr" autocomplete="email"><label for="user_email">Adresse e-mail</label></div>
              <div class="form-floating"><input type="password" class="form-control" id="user_password" name="user[password]" placeholder=" " autocomplete="current-password"><label for="user_password">Mot de passe</label></div>
              <div class="form-check"><input type="checkbox" id="rm" name="user[remember_me]"><label for="rm">Se souvenir de moi</label></div>
              <input type="submit" class="btn btn-primary" value="Se connecter">`,
            )}<p><a href="${view.base}/mdp">Mot de passe oublié ?</a> <a href="${view.base}/inscription">S’inscrire</a></p></main>`,
          ),
      },
    },
  },
  {
    name: 'placeholders-es',
    about: 'No labels, only placeholders; a search box in the header and a newsletter in the footer.',
    lang: 'es',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      acceso: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('usuario', 'clave', 'Usuario o contraseña incorrectos'),
        html: (view) =>
          document(
            view,
            'Tienda',
            `<header><form action="${view.base}"><input name="q" placeholder="Buscar productos"><button>Buscar</button></form></header>
            <div class="card">${form(
              view,
              `<input name="usuario" placeholder="Usuario o correo electrónico"><input name="clave" type="password" placeholder="Contraseña">${refusal(view, '<span class="field-validation-error">', '</span>')}<button type="submit">Entrar</button>`,
            )}</div><footer><form action="${view.base}"><p>Suscríbete a nuestro boletín</p><input type="email" name="mail" placeholder="Tu correo"><button>Suscribirme</button></form></footer>`,
          ),
      },
    },
  },
  {
    name: 'beside-it',
    about: 'The sign-up form is beside the login form, both with a mail address and a password.',
    lang: 'it',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      account: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('login_email', 'login_password', 'E-mail o password non corretti.'),
        html: (view) =>
          document(
            view,
            'Il mio account',
            `<div style="display:flex;gap:60px"><section><h2>Registrati</h2><form method="post" action="${view.base}/nuovo"><p><label>Indirizzo email <input type="email" name="email"></label></p><p><label>Password <input type="password" name="password" autocomplete="new-password"></label></p><button>Registrati</button></form></section>
            <section><h2>Accedi</h2>${form(
              view,
              `<p><label>Nome utente o email <input name="login_email"></label></p><p><label>Password <input type="password" name="login_password"></label></p>${refusal(view, '<ul class="errors"><li>', '</li></ul>')}<button>Accedi</button>`,
            )}</section></div>`,
          ),
      },
    },
  },
  {
    name: 'shop-pl',
    about: 'A login box in a page with many links; the error appears as a note at the top of the page.',
    lang: 'pl',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      logowanie: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('login', 'haslo', 'Nieprawidłowy login lub hasło.'),
        html: (view) =>
          document(
            view,
            'Sklep',
            `${refusal(view, '<div class="messages"><div class="message-error">', '</div></div>')}<nav>${Array.from({ length: 40 }, (_, at) => `<a href="${view.base}?k=${at}">Kategoria ${at}</a>`).join(' ')}</nav>
            <div class="card"><h2>Zaloguj się</h2>${form(view, `<label>Login <input name="login"></label><label>Hasło <input type="password" name="haslo"></label><button class="btn">Zaloguj</button>`)}<a href="${view.base}/nowe">Załóż konto</a></div>`,
          ),
      },
    },
  },
  {
    name: 'portal-tr',
    about: 'A portal with a customer number, an error in a JavaScript alert, and no label on the button but its value.',
    lang: 'tr',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      giris: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('musteriNo', 'sifre', 'Müşteri numarası veya şifre hatalı.'),
        html: (view) =>
          document(
            view,
            'İnternet Şubesi',
            `<div class="card"><h3>Bireysel</h3>${form(view, `<label>Müşteri No / T.C. Kimlik No<input name="musteriNo" autocomplete="off"></label><label>Şifre<input type="password" name="sifre" autocomplete="off"></label><input type="submit" value="Giriş">`)}</div>${refusal(view, '<script>alert("', '")</script>')}`,
          ),
      },
    },
  },
  {
    name: 'cyrillic-ru',
    about: 'Russian, with the error below the password and a box for a stranger’s computer.',
    lang: 'ru',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      vhod: {
        reads: 'login identifier:identifier password:password (sso_vk) (sso_yandex)',
        submit: nameAndPassword('USER_LOGIN', 'USER_PASSWORD', 'Неверный логин или пароль.'),
        html: (view) =>
          document(
            view,
            'Авторизация',
            `<div class="card"><h1>Вход на сайт</h1>${form(view, `<input name="USER_LOGIN" placeholder="Логин"><input type="password" name="USER_PASSWORD" placeholder="Пароль">${refusal(view, '<div class="errortext">')}<label><input type="checkbox" name="alien"> Чужой компьютер</label><button>Войти</button>`)}<p>Войти через <a class="btn" href="${view.base}/oauth/vk">ВКонтакте</a> <a class="btn" href="${view.base}/oauth/yandex">Яндекс</a></p></div>`,
          ),
      },
    },
  },
  {
    name: 'kanji-ja',
    about: 'Japanese, with two providers and a link to sign up.',
    lang: 'ja',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password (sso_google) (sso_line)',
        submit: nameAndPassword('mail', 'pass', 'メールアドレスまたはパスワードが正しくありません。'),
        html: (view) =>
          document(
            view,
            'ログイン',
            `<div class="card"><h1>ログイン</h1>${refusal(view, '<div class="c-alert">')}${form(view, `<dl><dt>メールアドレス</dt><dd><input type="text" name="mail"></dd><dt>パスワード</dt><dd><input type="password" name="pass"></dd></dl><label><input type="checkbox" name="keep">ログイン状態を保持する</label><button>ログイン</button>`)}<button type="button">Googleでログイン</button><button type="button">LINEでログイン</button><a href="${view.base}/new">新規会員登録はこちら</a></div>`,
          ),
      },
    },
  },
  {
    name: 'terms-zh',
    about: 'Chinese, and the login goes through only when the terms are ticked.',
    lang: 'zh',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password >accept!',
        submit: (values) =>
          values['agree'] !== 'on'
            ? { refused: '请先同意用户协议' }
            : isPerson(values['account']) && knows(values['pwd'])
              ? { in: true }
              : { refused: '账号或密码错误' },
        html: (view) =>
          document(
            view,
            '登录',
            `<div class="card"><h2>账号登录</h2>${form(view, `<input name="account" placeholder="手机号/邮箱/用户名"><input name="pwd" type="password" placeholder="请输入密码">${refusal(view, '<p class="tips">', '</p>')}<label><input type="checkbox" name="agree">我已阅读并同意《用户协议》和《隐私政策》</label><button>登 录</button>`)}<a href="${view.base}/find">忘记密码</a> <a href="${view.base}/reg">免费注册</a></div>`,
          ),
      },
    },
  },
  {
    name: 'password-only-nl',
    about: 'One password for the whole site, without a name.',
    lang: 'nl',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login password:password',
        submit: (values) => (knows(values['pw']) ? { in: true } : { refused: 'Wachtwoord onjuist' }),
        html: (view) =>
          document(
            view,
            'Apparaat',
            `<div class="card"><h1>Router</h1>${form(view, `<label>Wachtwoord <input type="password" name="pw"></label>${refusal(view, '<em id="msg">', '</em>')}<button>Inloggen</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'database-pt',
    about:
      'A tool for databases: system, server, user, password and database in one form, with the server chosen already.',
    lang: 'pt',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      entrar: {
        reads: 'login server:text identifier:identifier password:password database:text',
        submit: (values) =>
          isPerson(values['auth[username]']) &&
          knows(values['auth[password]']) &&
          values['auth[server]'] === person.server
            ? { in: true }
            : { refused: 'Credenciais inválidas.' },
        html: (view) =>
          document(
            view,
            'Base de dados - Entrar',
            `${refusal(view, "<div class='error'>")}${form(
              view,
              `<table><tr><th>Servidor<td><select name="auth[server]"><option value="main" selected>main</option><option value="backup">backup</option></select>
              <tr><th>Nome de usuário<td><input name="auth[username]"><tr><th>Senha<td><input type="password" name="auth[password]"><tr><th>Base de dados<td><input name="auth[db]"></table><p><input type="submit" value="Entrar"></p>`,
            )}`,
          ),
      },
    },
  },
  {
    name: 'ldap-cs',
    about: 'A select for the directory: LDAP or local.',
    lang: 'cs',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      prihlaseni: {
        reads: 'login identifier:identifier password:password account_type:text',
        submit: nameAndPassword('login_name', 'login_password', 'Nesprávné jméno nebo heslo.'),
        html: (view) =>
          document(
            view,
            'Přihlášení',
            `<div class="card">${form(view, `<label for="n">Uživatelské jméno</label><input id="n" name="login_name"><label for="h">Heslo</label><input id="h" type="password" name="login_password"><label for="a">Způsob přihlášení</label><select id="a" name="auth"><option value="ldap-1" selected>LDAP</option><option value="local">Místní databáze</option></select>${refusal(view, '<div class="center b">')}<button>Přihlásit se</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'unknown-language',
    about: 'Estonian, of which no table has a word: types and order decide, and the error is known by being new.',
    lang: 'et',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('k', 's', 'Sellist kasutajat pole või on parool vale.'),
        html: (view) =>
          document(
            view,
            'Tere tulemast',
            `<div class="card"><h1>Tere tulemast</h1>${form(view, `<p>Kasutajatunnus</p><input name="k"><p>Parool</p><input name="s" type="password"><p>${view.error ?? ''}</p><button>Sisene</button>`)}</div>`,
          ),
      },
    },
  },
];
