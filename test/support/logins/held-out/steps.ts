import { insidePage, type LoginCase } from '../site.ts';

/** Logins of more than one step. */
export const steps: LoginCase[] = [
  {
    name: 'korean-identifier-first',
    language: 'ko',
    about: 'the name on one page, the password on the next; who is meant is shown as text',
    account: { username: 'minji@yeje.example', password: '한강공원-1' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('민지님, 안녕하세요', '로그아웃'));
      if (visit.path === '/')
        return visit.html('<h1>예제 서비스</h1><p>소개</p><a class="cta" href="/account/start">로그인</a>');
      if (visit.path === '/account/start') {
        let error = '';
        if (visit.method === 'POST') {
          if (visit.form['loginId'] === site.account.username) {
            visit.state.who = visit.form['loginId'];
            return visit.redirect('/account/secret');
          }
          error = '<em>등록되지 않은 계정입니다.</em>';
        }
        return visit.html(
          `<h2>로그인</h2><form method="post"><input name="loginId" placeholder="이메일" autocomplete="username">${error}<button>다음</button></form>`,
        );
      }
      if (visit.path !== '/account/secret' || !visit.state.who) return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.state.who, visit.form['pw'])) return visit.enter('/');
        error = '<em class="invalid-feedback">비밀번호가 일치하지 않습니다.</em>';
      }
      visit.html(`<h2>비밀번호 입력</h2><p>${visit.state.who} <a href="/account/start">변경</a></p>
        <form method="post"><input type="password" name="pw" autocomplete="current-password">${error}<button>로그인</button></form>`);
    },
  },
  {
    name: 'german-totp',
    language: 'de',
    about: 'password, then a code of an authenticator; the page also offers a recovery code',
    account: { username: 'vorstand', password: 'Vereinsheim 12', totp: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' },
    ends: 'logged in',
    cookie: { name: 'verein', maxAge: 86_400 },
    entry: '/anmelden',
    serve(visit, site) {
      if (visit.path === '/')
        return visit.state.user ? visit.inside(insidePage('Übersicht', 'Abmelden')) : visit.redirect('/anmelden');
      if (visit.path === '/anmelden') {
        let error = '';
        if (visit.method === 'POST') {
          if (site.knows(visit.form['benutzer'], visit.form['passwort'])) return visit.goOn('passed', '/bestaetigen');
          error = '<div class="meldung fehler">Benutzername oder Passwort ist falsch.</div>';
        }
        return visit.html(`<h1>Anmelden</h1>${error}<form method="post"><div><label for="b">Benutzername</label><input id="b" name="benutzer"></div>
          <div><label for="p">Passwort</label><input id="p" name="passwort" type="password"></div><button>Anmelden</button></form>`);
      }
      if (visit.path !== '/bestaetigen' || !visit.state['passed']) return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.takes(visit.form['zahl'])) return visit.enter('/');
        error = '<div class="meldung fehler">Der Code ist ungültig oder wurde schon benutzt.</div>';
      }
      visit.html(`<h1>Bestätigung in zwei Schritten</h1><p>Öffnen Sie Ihre Authenticator-App und geben Sie den sechsstelligen Code ein.</p>${error}
        <form method="post"><label>Code <input name="zahl" inputmode="numeric" maxlength="6"></label>
        <label><input type="checkbox" name="vertrauen"> Diesem Gerät 30 Tage vertrauen</label><button>Bestätigen</button></form>
        <a href="/ersatz">Wiederherstellungscode verwenden</a>`);
    },
  },
  {
    name: 'english-six-boxes',
    language: 'en',
    about: 'six boxes of one digit, the focus moves on by itself, the last digit submits',
    account: { username: 'jamie@vault.example', password: 'S1x-Boxes!', totp: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.path === '/login') {
        if (!site.knows(visit.form['email'], visit.form['password']))
          return visit.json({ error: 'Wrong email or password.' }, 401);
        visit.state['passed'] = true;
        return visit.json({ next: 'code' });
      }
      if (visit.path === '/code') {
        if (!visit.state['passed'] || !site.takes(visit.form['code']))
          return visit.json({ error: 'That code did not work.' }, 401);
        visit.logIn();
        return visit.json({ next: 'in' });
      }
      if (visit.path !== '/') return;
      if (visit.state.user) return visit.inside(insidePage('Your vault', 'Sign out', '<p>12 items</p>'));
      visit.html(sixBoxes, { title: 'Vault' });
    },
  },
  {
    name: 'czech-account-picker',
    language: 'cs',
    about: 'after the password the user picks one of two accounts',
    account: { username: 'tereza', password: 'Karlštejn-9' },
    ends: 'logged in',
    meanwhile: { step: 'AWAITING_INPUT', choice: /Osobní/, optional: true },
    serve(visit, site) {
      if (visit.path === '/')
        return visit.state.user
          ? visit.inside(insidePage('Dobrý den, Terezo', 'Odhlásit'))
          : visit.redirect('/prihlaseni');
      if (visit.path === '/prihlaseni') {
        let error = '';
        if (visit.method === 'POST') {
          if (site.knows(visit.form['jmeno'], visit.form['heslo'])) return visit.goOn('passed', '/ucty');
          error = '<p class="chyba" role="alert">Nesprávné jméno nebo heslo.</p>';
        }
        return visit.html(`<h1>Přihlášení</h1>${error}<form method="post"><label>Uživatelské jméno<input name="jmeno"></label>
          <label>Heslo<input type="password" name="heslo"></label><button>Přihlásit se</button></form>`);
      }
      if (visit.path === '/ucty' && visit.state['passed'])
        return visit.html(`<h1>Vyberte účet</h1><ul><li><a href="/ucty/1">Osobní účet<br><small>tereza@doma.example</small></a></li>
          <li><a href="/ucty/2">Firemní účet<br><small>tereza@firma.example</small></a></li></ul><a href="/prihlaseni">Použít jiný účet</a>`);
      if (/^\/ucty\/[12]$/.test(visit.path) && visit.state['passed']) return visit.enter('/');
    },
  },
  {
    name: 'portuguese-mail-link',
    language: 'pt',
    about: 'no password: a link is sent by mail, and the page waits until it was opened somewhere',
    account: { username: 'joana@exemplo.example', password: '' },
    ends: 'logged in',
    values: { email: 'joana@exemplo.example' },
    anyPassword: true,
    meanwhile: {
      step: 'AWAITING_EXTERNAL_ACTION',
      outside: (site) => {
        for (const state of site.states.values()) if (state['mailed']) state['opened'] = true;
      },
    },
    serve(visit, site) {
      if (visit.path === '/estado') return visit.json({ pronto: visit.state['opened'] === true });
      if (visit.path === '/entrar-ja' && visit.state['opened']) return visit.enter('/');
      if (visit.path === '/enviado')
        return visit.html(`<h1>Verifique o seu e-mail</h1><p>Enviámos uma ligação para ${site.account.username}. Abra-a para continuar.</p>
          <p>Não recebeu? <a href="/">Enviar de novo</a></p>
          <script>setInterval(async () => { if ((await (await fetch('/estado')).json()).pronto) location = '/entrar-ja'; }, 1000)</script>`);
      if (visit.path !== '/') return;
      if (visit.state.user) return visit.inside(insidePage('Olá, Joana', 'Sair'));
      if (visit.method === 'POST' && visit.form['correio'] === site.account.username) {
        visit.state['mailed'] = true;
        return visit.redirect('/enviado');
      }
      const error = visit.method === 'POST' ? '<p class="erro">Não conhecemos este e-mail.</p>' : '';
      visit.html(
        `<h1>Entrar</h1><form method="post"><label>E-mail <input name="correio" type="email"></label>${error}<button>Enviar ligação</button></form>`,
      );
    },
  },
  {
    name: 'japanese-mail-code',
    language: 'ja',
    about: 'after the password a code that was sent by mail',
    account: { username: 'haruto', password: 'sakura-mochi5' },
    ends: 'logged in',
    meanwhile: { step: 'AWAITING_INPUT', code: (site) => site.sent },
    serve(visit, site) {
      if (visit.path === '/')
        return visit.state.user
          ? visit.inside(insidePage('マイページ', 'ログアウト', '<p>ようこそ</p>'))
          : visit.redirect('/login');
      if (visit.path === '/login') {
        let error = '';
        if (visit.method === 'POST') {
          if (site.knows(visit.form['uid'], visit.form['pwd'])) {
            visit.state['passed'] = site.send();
            return visit.redirect('/ninsho');
          }
          error = '<p class="err">IDまたはパスワードが正しくありません。</p>';
        }
        return visit.html(`<h1>ログイン</h1>${error}<form method="post"><dl><dt>ID</dt><dd><input name="uid"></dd><dt>パスワード</dt>
          <dd><input type="password" name="pwd"></dd></dl><button>ログインする</button></form>`);
      }
      if (visit.path !== '/ninsho' || !visit.state['passed']) return;
      let error = '';
      if (visit.method === 'POST') {
        if (visit.form['n'] === visit.state['passed']) return visit.enter('/');
        error = '<p class="err">認証コードが違います。</p>';
      }
      visit.html(`<h1>二段階認証</h1><p>h***@mail.example に認証コードを送信しました。</p>${error}
        <form method="post"><input name="n" autocomplete="one-time-code" inputmode="numeric" placeholder="6桁の認証コード"><button>認証する</button></form>
        <a href="/ninsho">コードを再送する</a>`);
    },
  },
  {
    name: 'english-factor-choice',
    language: 'en',
    about: 'a list of second factors comes before the code',
    account: { username: 'sam@bank.example', password: 'Ledger$2020', totp: 'MFRGGZDFMZTWQ2LKMFRGGZDFMZTWQ2LK' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.path === '/')
        return visit.state.user
          ? visit.inside(insidePage('Accounts', 'Log off', '<p>Balance 12.40</p>'))
          : visit.redirect('/logon');
      if (visit.path === '/logon') {
        let error = '';
        if (visit.method === 'POST') {
          if (site.knows(visit.form['userId'], visit.form['passcode'])) return visit.goOn('passed', '/verify');
          error = '<div class="banner banner--error">We can’t find that user ID and password. Try again.</div>';
        }
        return visit.html(`<h1>Log on to online banking</h1>${error}<form method="post"><label for="u">User ID</label><input id="u" name="userId" autocomplete="username">
          <label for="p">Password</label><input id="p" type="password" name="passcode"><label><input type="checkbox"> Remember my user ID</label><button>Log on</button></form>`);
      }
      if (!visit.state['passed']) return;
      if (visit.path === '/verify')
        return visit.html(`<h1>How should we verify it’s you?</h1><form method="get" action="/verify/go">
          <label><input type="radio" name="how" value="sms" checked> Text message to ••• 4471</label><br><label><input type="radio" name="how" value="voice"> Phone call to ••• 4471</label><br>
          <label><input type="radio" name="how" value="app"> Authenticator app</label><br><button>Continue</button></form>`);
      if (visit.path === '/verify/go') {
        if (visit.query.get('how') !== 'app')
          return visit.html(
            '<h1>Enter the code we texted to ••• 4471</h1><form method="post" action="/verify/sms"><input name="code"><button>Verify</button></form><a href="/verify">Try another way</a>',
          );
        return visit.redirect('/verify/app');
      }
      if (visit.path !== '/verify/app') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.takes(visit.form['otp'])) return visit.enter('/');
        error = '<div class="banner banner--error">Incorrect code.</div>';
      }
      visit.html(
        `<h1>Enter the code from your app</h1>${error}<form method="post"><label for="o">6-digit code</label><input id="o" name="otp" autocomplete="one-time-code" maxlength="6"><button>Verify</button></form><a href="/verify">Try another way</a>`,
      );
    },
  },
  {
    name: 'danish-passkey-first',
    language: 'da',
    about: 'a passkey is what the page suggests; the password is behind a link',
    account: { username: 'freja@hygge.example', password: 'Smørrebrød4' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.state.user && visit.path === '/') return visit.inside(insidePage('Hej Freja', 'Log ud'));
      if (visit.path === '/')
        return visit.html(`<h1>Log ind</h1><button id="pk">Log ind med adgangsnøgle</button><p><a href="/kodeord">Brug adgangskode i stedet</a></p>
          <script>pk.onclick = () => navigator.credentials.get({ publicKey: { challenge: new Uint8Array(32) } }).catch(() => { document.body.append('Ingen adgangsnøgle fundet'); });</script>`);
      if (visit.path !== '/kodeord') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['email'], visit.form['kode'])) return visit.enter('/');
        error = '<p style="color:#b00020">Forkert e-mail eller adgangskode</p>';
      }
      visit.html(`<h1>Log ind</h1><form method="post"><label>E-mail <input name="email" type="email" autocomplete="username webauthn"></label>
        <label>Adgangskode <input name="kode" type="password"></label>${error}<button>Fortsæt</button></form>`);
    },
  },
];

const sixBoxes = `<div id="app"><h1>Sign in</h1><form id="f"><input type="email" name="email" placeholder="Email"><input type="password" name="password" placeholder="Password"><button>Sign in</button><p class="help-block"></p></form></div>
<script>
const post = async (path, data) => (await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(data) })).json();
f.onsubmit = async (e) => {
  e.preventDefault();
  const r = await post('/login', Object.fromEntries(new FormData(f)));
  if (r.error) { document.querySelector('.help-block').textContent = r.error; return; }
  app.innerHTML = '<h1>Two-step verification</h1><p>Enter the 6-digit code from your authenticator app</p><div id="boxes">' + [1,2,3,4,5,6].map((n) => '<input class="d" maxlength="1" inputmode="numeric" aria-label="Digit ' + n + '" style="width:2em">').join('') + '</div><p class="help-block"></p>';
  const boxes = [...document.querySelectorAll('.d')];
  boxes[0].focus();
  boxes.forEach((box, n) => {
    box.addEventListener('keydown', (e) => { if (e.key === 'Backspace' && !box.value && n) boxes[n - 1].focus(); });
    box.addEventListener('input', async () => {
      if (box.value && n < 5) return boxes[n + 1].focus();
      const code = boxes.map((b) => b.value).join('');
      if (code.length < 6) return;
      const r = await post('/code', { code });
      if (!r.error) { location.reload(); return; }
      document.querySelector('.help-block').textContent = r.error;
      boxes.forEach((b) => { b.value = ''; });
      boxes[0].focus();
    });
  });
};
</script>`;
