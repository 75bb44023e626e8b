import { insidePage, type LoginCase } from '../site.ts';

/** Pages that the server renders: one form, one submit. */
export const plain: LoginCase[] = [
  {
    name: 'finnish-library',
    language: 'fi',
    about: 'server-rendered, own field names, no hints, the error is a plain paragraph',
    account: { username: 'aino.virtanen', password: 'Revontulet-88' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.path !== '/') return;
      if (visit.state.user) return visit.inside(insidePage('Hei, Aino Virtanen', 'Kirjaudu ulos', '<p>Lainat: 3</p>'));
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['tunnus'], visit.form['salasana'])) return visit.enter('/');
        error = '<p class="virhe">Käyttäjätunnus tai salasana on väärin.</p>';
      }
      visit.html(`<h1>Kunnankirjasto</h1>
        <form method="get" action="/haku"><input name="q" placeholder="Etsi teoksia"><button>Hae</button></form>
        <h2>Kirjaudu sisään</h2>${error}
        <form method="post" action="/"><table>
        <tr><td><label for="t">Käyttäjätunnus</label></td><td><input id="t" name="tunnus"></td></tr>
        <tr><td><label for="s">Salasana</label></td><td><input id="s" name="salasana" type="password"></td></tr>
        <tr><td></td><td><input type="submit" value="Kirjaudu"></td></tr></table></form>
        <p><a href="/unohtui">Unohtuiko salasana?</a></p>`);
    },
  },
  {
    name: 'french-shop-sso',
    language: 'fr',
    about: 'buttons of identity providers above the form; the form is what the credential is for; the session id stays',
    account: { username: 'camille@boutique.example', password: 'Chartreuse!7' },
    ends: 'logged in',
    cookie: { name: 'PHPSESSID' },
    entry: '/connexion',
    home: '/compte',
    serve(visit, site) {
      if (visit.path === '/compte')
        return visit.state.user
          ? visit.inside(insidePage('Mon compte', 'Se déconnecter', '<p>Bonjour Camille</p>'))
          : visit.redirect('/connexion');
      if (visit.path === '/') return visit.html('<h1>Boutique</h1><a href="/connexion">Mon compte</a>');
      if (visit.path !== '/connexion') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['email'], visit.form['mdp'])) return visit.enter('/compte', { sameId: true });
        error = '<div class="alert alert-danger" role="alert">Identifiants incorrects. Veuillez réessayer.</div>';
      }
      visit.html(`<main><h1>Se connecter</h1>${error}
        <a class="btn" href="/sso/google"><svg width="16" height="16"></svg> Continuer avec Google</a><br>
        <a class="btn" href="/sso/apple"><svg width="16" height="16"></svg> Continuer avec Apple</a><br>
        <button type="button" onclick="location='/sso/facebook'">Continuer avec Facebook</button>
        <p>ou</p>
        <form method="post"><input type="hidden" name="jeton" value="x">
        <label>Adresse e-mail <input type="email" name="email" autocomplete="email" required></label><br>
        <label>Mot de passe <input type="password" name="mdp" autocomplete="current-password" required></label>
        <button type="button" aria-label="Afficher le mot de passe">👁</button><br>
        <label><input type="checkbox" name="rester"> Rester connecté</label><br>
        <button type="submit">Se connecter</button> <a href="/oubli">Mot de passe oublié ?</a></form>
        <p>Pas encore de compte ? <a href="/inscription">Créer un compte</a></p></main>`);
    },
  },
  {
    name: 'turkish-signup-beside',
    language: 'tr',
    about: 'a sign-up form is before the login form, with more fields and the larger button',
    account: { username: 'deniz@ornek.example', password: 'Kapadokya_34' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('Hoş geldiniz, Deniz', 'Çıkış yap'));
      if (visit.path === '/kayit') return visit.html('<p>Kayıt alındı. E-postanızı kontrol edin.</p>');
      let error = '';
      if (visit.path === '/giris' && visit.method === 'POST') {
        if (site.knows(visit.form['eposta'], visit.form['sifre'])) return visit.enter('/');
        error = '<span class="field-validation-error">E-posta veya şifre hatalı</span>';
      } else if (visit.path !== '/') return;
      visit.html(`<div style="display:flex;gap:40px">
        <section><h2>Üye ol</h2><form method="post" action="/kayit">
        <p><input name="ad" placeholder="Ad Soyad"></p><p><input name="eposta" type="email" placeholder="E-posta"></p>
        <p><input name="sifre" type="password" placeholder="Şifre"></p><p><input name="sifre2" type="password" placeholder="Şifre (tekrar)"></p>
        <p><label><input type="checkbox" name="kosul"> Koşulları kabul ediyorum</label></p>
        <p><button style="padding:16px;font-size:20px">Hemen üye ol</button></p></form></section>
        <section><h2>Giriş yap</h2><form method="post" action="/giris">
        <p><input name="eposta" type="email" placeholder="E-posta"></p><p><input name="sifre" type="password" placeholder="Şifre"></p>
        ${error}<p><button>Giriş yap</button></p></form></section></div>`);
    },
  },
  {
    name: 'ukrainian-honeypot',
    language: 'uk',
    about: 'fields that a person does not see come first; who fills them is taken for a robot',
    account: { username: 'olena', password: 'Соняшник2024' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('Вітаємо, Олено', 'Вийти'));
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST') {
        if (visit.form['email'] || visit.form['website'] || visit.form['phone'])
          return visit.html('<h1>403</h1><p>Підозріла активність.</p>', { status: 403 });
        if (site.knows(visit.form['f1'], visit.form['f2'])) return visit.enter('/');
        error = '<div class="msg msg-err">Невірний логін або пароль</div>';
      }
      visit.html(`<h1>Вхід до кабінету</h1>${error}<form method="post">
        <div style="position:absolute;left:-9999px" aria-hidden="true"><label>Email <input name="email" tabindex="-1" autocomplete="off"></label></div>
        <div style="height:0;overflow:hidden"><input name="website" type="text" tabindex="-1"></div>
        <input name="phone" style="opacity:0;width:1px;height:1px;border:0" tabindex="-1">
        <p><input name="f1" placeholder="Логін"></p>
        <p><input id="pw" name="f2" type="password" placeholder="Пароль">
        <a href="#" onclick="pw.type=pw.type==='password'?'text':'password';return false">Показати</a></p>
        <p><button>Увійти</button></p></form>`);
    },
  },
  {
    name: 'german-frameset',
    language: 'de',
    about: 'frames of 1999: the form is a table in one of them, the submit is a picture',
    account: { username: 'k.meier', password: 'Buchhaltung#1' },
    ends: 'logged in',
    home: '/haupt',
    serve(visit, site) {
      if (visit.path === '/')
        return visit.text(
          `<html><head><title>Lohnportal</title></head><frameset cols="180,*"><frame src="/menue" name="menue"><frame src="/haupt" name="haupt"></frameset></html>`,
          'text/html; charset=utf-8',
        );
      if (visit.path === '/menue')
        return visit.html(
          `<a href="/hilfe" target="haupt">Hilfe</a><br><a href="/kontakt" target="haupt">Kontakt</a>${visit.state.user ? '<br><a href="/ende" target="_top">Abmelden</a>' : ''}`,
        );
      if (visit.path === '/punkt.gif')
        return visit.text(
          '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><rect width="60" height="20"/></svg>',
          'image/svg+xml',
        );
      if (visit.path !== '/haupt') return;
      if (visit.state.user) return visit.inside('<h2>Lohnabrechnungen</h2><p>K. Meier</p><ul><li>Oktober</li></ul>');
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['BENUTZER'], visit.form['KENNWORT'])) {
          visit.logIn();
          return visit.text('<script>top.location="/"</script>', 'text/html');
        }
        error = '<font color="red">Anmeldung fehlgeschlagen!</font>';
      }
      visit.html(`<center><form method="post" action="/haupt"><table border="1">
        <tr><td colspan="2" bgcolor="#ccccff"><b>Anmeldung Lohnportal</b></td></tr>
        <tr><td>Personalnr. / Name:</td><td><input type="text" name="BENUTZER" size="12"></td></tr>
        <tr><td>Kennwort:</td><td><input type="password" name="KENNWORT" size="12"></td></tr>
        <tr><td>${error}</td><td><input type="image" src="/punkt.gif" alt="Los"></td></tr></table></form></center>`);
    },
  },
  {
    name: 'russian-tenant',
    language: 'ru',
    about: 'a list of organisations and a directory to choose from stand in the same form',
    account: { username: 'ivanov', password: 'Зима-Лето-5' },
    ends: 'logged in',
    values: { username: 'ivanov', password: 'Зима-Лето-5', tenant: 'Филиал Север' },
    cookie: { name: 'session', maxAge: 7200 },
    serve(visit, site) {
      if (visit.state.user && visit.path === '/')
        return visit.inside(insidePage('Рабочий стол', 'Выход', '<p>Иванов И. И.</p>'));
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST') {
        const right = visit.form['org'] === 'n7' && site.knows(visit.form['login'], visit.form['pass']);
        if (right) return visit.enter('/');
        error = '<div class="error">Ошибка входа: неверная организация, логин или пароль</div>';
      }
      visit.html(`<h1>Учётная система</h1>${error}<form method="post">
        <p>Организация: <select name="org"><option value="c1">Головной офис</option><option value="n7">Филиал Север</option><option value="s3">Филиал Юг</option></select></p>
        <p>Логин: <input name="login"></p><p>Пароль: <input name="pass" type="password"></p>
        <p><input type="submit" value="Войти"></p></form>`);
    },
  },
  {
    name: 'basic-auth',
    language: 'en',
    about: 'HTTP Basic, and nothing else',
    notStored: true,
    account: { username: 'reader', password: 'archive:key' },
    ends: 'logged in',
    serve(visit, site) {
      const given = Buffer.from(
        (visit.request.headers.authorization ?? '').replace(/^Basic /, ''),
        'base64',
      ).toString();
      const [name, ...rest] = given.split(':');
      if (given && site.knows(name, rest.join(':'))) return visit.inside('<h1>Archive</h1><p>214 documents</p>');
      visit.response.setHeader('www-authenticate', 'Basic realm="Archive"');
      visit.html('<h1>401 Unauthorized</h1>', { status: 401 });
    },
  },
  {
    name: 'password-only',
    language: 'en',
    about: 'one password for the whole thing and no user name',
    account: { username: '', password: 'correct horse' },
    ends: 'logged in',
    values: { password: 'correct horse' },
    cookie: { name: 'dash', maxAge: 3600 },
    serve(visit, site) {
      if (visit.state.user !== undefined && visit.path === '/')
        return visit.inside(insidePage('Dashboard', 'Lock', '<p>All sensors are fine.</p>'));
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows('', visit.form['secret'])) return visit.enter('/');
        error = '<small style="color:#c00">Nope.</small>';
      }
      visit.html(
        `<form method="post"><input type="password" name="secret" placeholder="Password" autofocus>${error} <button>→</button></form>`,
      );
    },
  },
];
