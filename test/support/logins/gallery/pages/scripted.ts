import { document, form, isPerson, knows, nameAndPassword, refusal, type GalleryPage, type View } from '../page.ts';

/** Sends what the fields hold as JSON, as single-page applications do, and shows the refusal in `#note`. */
const sending = ({ action, csrf }: View, fields: string) => `
  const send = async () => {
    const response = await fetch('${action}', { method: 'POST', headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify({ csrf: '${csrf}', ...${fields} }) });
    const answer = await response.json();
    if (answer.location) return location.assign(answer.location);
    if (answer.to) return location.assign('${action}'.replace(/[^/]*$/, answer.to));
    note(answer.refused);
  };`;

/** Logins that a script draws. */
export const scripted: GalleryPage[] = [
  {
    name: 'div-soup-en',
    about:
      'A single-page application of divs: no form, no button, no label; fields keep their values in the script’s state.',
    lang: 'en',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('user', 'pass', 'Sorry, we did not recognize these details.'),
        html: (view) =>
          document(
            view,
            'App',
            `<div id="root"></div><script>
            const state = { user: '', pass: '' };
            const add = (parent, tag, props) => parent.appendChild(Object.assign(document.createElement(tag), props));
            const note = (text) => { toast.textContent = text; toast.style.display = 'block'; };
            ${sending(view, 'state')}
            const root = document.getElementById('root');
            setTimeout(() => {
              const card = add(root, 'div', { className: 'css-1x2y card' });
              add(card, 'div', { className: 'css-9 title', textContent: 'Welcome back' });
              for (const [key, hint, type] of [['user', 'Email address', 'text'], ['pass', 'Password', 'password']]) {
                const wrap = add(card, 'div', { className: 'css-7' });
                const input = add(wrap, 'input', { placeholder: hint, type });
                input.addEventListener('input', () => { state[key] = input.value; });
              }
              const go = add(card, 'div', { className: 'css-button btn', textContent: 'Log in' });
              go.addEventListener('click', send);
            }, 30);
            const toast = add(document.body, 'div', { className: 'css-toast' });
            toast.style.cssText = 'display:none;position:fixed;top:10px;right:10px;width:300px;background:#fcc';
            </script>`,
          ),
      },
    },
  },
  {
    name: 'shadow-de',
    about: 'Every field in a shadow root of its own, below a web component.',
    lang: 'de',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      anmelden: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('name', 'secret', 'Anmeldung fehlgeschlagen: Benutzername oder Passwort ungültig.'),
        html: (view) =>
          document(
            view,
            'Zuhause',
            `<login-card></login-card><script>
            customElements.define('text-field', class extends HTMLElement {
              connectedCallback() {
                const root = this.attachShadow({ mode: 'open' });
                root.innerHTML = '<label>' + this.getAttribute('label') + '<br><input type="' + (this.getAttribute('type') || 'text') + '"></label>';
              }
              get value() { return this.shadowRoot.querySelector('input').value; }
            });
            customElements.define('login-card', class extends HTMLElement {
              connectedCallback() {
                const root = this.attachShadow({ mode: 'open' });
                root.innerHTML = '<h1>Anmelden</h1><p class="alert"></p><text-field id="n" label="Benutzername"></text-field><text-field id="s" label="Passwort" type="password"></text-field><p><button>Anmelden</button></p>';
                const note = (text) => { root.querySelector('.alert').textContent = text; };
                ${sending(view, "{ name: root.getElementById('n').value, secret: root.getElementById('s').value }")}
                root.querySelector('button').addEventListener('click', send);
              }
            });</script>`,
          ),
      },
    },
  },
  {
    name: 'frame-fr',
    about: 'The form is in a frame of the page.',
    lang: 'fr',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      accueil: {
        reads: 'login identifier:identifier password:password',
        html: (view) =>
          document(
            view,
            'Espace client',
            `<h1>Espace client</h1><p>Bienvenue</p><iframe src="${view.base}/cadre" width="500" height="400"></iframe>`,
          ),
      },
      cadre: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('id', 'mdp', 'Identifiant inconnu ou mot de passe erroné.'),
        html: (view) =>
          document(
            view,
            'Cadre',
            form(
              view,
              `<label>Identifiant<input name="id"></label><br><label>Mot de passe<input type="password" name="mdp"></label>${refusal(view, '<p class="erreur">', '</p>')}<button>Valider</button>`,
              'target="_top"',
            ),
          ),
      },
    },
  },
  {
    name: 'dialog-es',
    about: 'A button opens a dialog with the form, over a page with much else.',
    lang: 'es',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      inicio: {
        reads: 'entry >entry',
        submit: nameAndPassword('correo', 'contrasena', 'Correo o contraseña no válidos'),
        html: (view) =>
          document(
            view,
            'Noticias',
            `<header><a href="${view.base}">Portada</a> <button type="button" onclick="document.querySelector('dialog').showModal()">Iniciar sesión</button></header>${'<p><a href="#">Una noticia</a> del día.</p>'.repeat(20)}
            <dialog><h2>Iniciar sesión</h2>${form(view, `<label>Correo electrónico<input type="email" name="correo"></label><label>Contraseña<input type="password" name="contrasena"></label>${refusal(view, '<p class="error">', '</p>')}<button>Entrar</button>`)}</dialog>${view.error === undefined ? '' : '<script>document.querySelector("dialog").showModal()</script>'}`,
          ),
      },
    },
  },
  {
    name: 'menu-nl',
    about: 'The link to the login is in a closed menu.',
    lang: 'nl',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      start: {
        reads: 'entry >menu',
        html: (view) =>
          document(
            view,
            'Winkel',
            `<button type="button" aria-expanded="false" aria-label="Menu" onclick="const list = document.getElementById('list'); list.hidden = !list.hidden; this.setAttribute('aria-expanded', String(!list.hidden))">☰</button>
            <ul id="list" hidden><li><a href="${view.base}/over">Over ons</a></li><li><a href="${view.base}/inloggen">Inloggen</a></li></ul><h1>Welkom in de winkel</h1><p>Fietsen en meer.</p>`,
          ),
      },
      inloggen: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('gebruiker', 'ww', 'De combinatie van gebruikersnaam en wachtwoord is onjuist.'),
        html: (view) =>
          document(
            view,
            'Inloggen',
            `<div class="card">${form(view, `<label>Gebruikersnaam<input name="gebruiker"></label><label>Wachtwoord<input type="password" name="ww"></label>${refusal(view, '<p role="status">', '</p>')}<button>Inloggen</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'tabs-pl',
    about: 'A tab for signing up is open; the one for the login is drawn by a script when it is chosen.',
    lang: 'pl',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      konto: {
        reads: 'entry >tab',
        submit: nameAndPassword('email', 'haslo', 'Podano błędny e-mail lub hasło.'),
        html: (view) =>
          document(
            view,
            'Moje konto',
            `<div class="card"><div role="tablist"><div role="tab" class="btn" aria-selected="true" id="t1">Rejestracja</div><div role="tab" class="btn" aria-selected="false" id="t2">Logowanie</div></div><div id="panel"></div></div><script>
            const panel = document.getElementById('panel');
            const show = (login) => {
              document.getElementById('t1').setAttribute('aria-selected', String(!login));
              document.getElementById('t2').setAttribute('aria-selected', String(login));
              panel.innerHTML = login
                ? '<label>E-mail<input id="e"></label><label>Hasło<input id="h" type="password"></label><p id="note" aria-live="polite"></p><button type="button" id="go">Zaloguj się</button>'
                : '<label>Imię<input></label><label>E-mail<input></label><label>Hasło<input type="password"></label><label>Powtórz hasło<input type="password"></label><button type="button">Zarejestruj się</button>';
              document.getElementById('go')?.addEventListener('click', send);
            };
            const note = (text) => { document.getElementById('note').textContent = text; };
            ${sending(view, "{ email: document.getElementById('e').value, haslo: document.getElementById('h').value }")}
            document.getElementById('t1').addEventListener('click', () => show(false));
            document.getElementById('t2').addEventListener('click', () => show(true));
            show(false);</script>`,
          ),
      },
    },
  },
  {
    name: 'slow-ru',
    about: 'The form is fetched by a script after a spinner, and its button is disabled until both fields are filled.',
    lang: 'ru',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password',
        submit: (values) =>
          isPerson(values['user']) && knows(values['pass'])
            ? { in: true }
            : { refused: 'Неправильное имя пользователя или пароль' },
        html: (view) =>
          document(
            view,
            'Система',
            `<div id="app">Загрузка…</div><script>
            const note = (text) => { document.getElementById('note').textContent = text; };
            ${sending(view, "{ user: document.getElementById('u').value, pass: document.getElementById('p').value }")}
            fetch('${view.base}/form').then((response) => response.text()).then((html) => {
              document.getElementById('app').innerHTML = html;
              const [user, pass, go] = ['u', 'p', 'go'].map((id) => document.getElementById(id));
              const check = () => { go.disabled = user.value === '' || pass.value === ''; };
              user.addEventListener('input', check);
              pass.addEventListener('input', check);
              go.addEventListener('click', send);
            });</script>`,
          ),
      },
      form: {
        reads: 'login identifier:identifier password:password',
        html: () =>
          '<div class="MuiCard card"><h5>Вход в систему</h5><div class="MuiFormControl"><label for="u">Имя пользователя</label><input id="u" autocomplete="username"></div><div class="MuiFormControl"><label for="p">Пароль</label><input id="p" type="password"></div><div class="MuiAlert-message" id="note"></div><button type="button" id="go" disabled>Войти</button></div>',
      },
    },
  },
  {
    name: 'same-page-ja',
    about: 'Identifier first, and the password appears below it in the same document.',
    lang: 'ja',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier',
        submit: nameAndPassword('uid', 'secret', 'IDまたはパスワードが間違っています'),
        html: (view) =>
          document(
            view,
            'ログイン',
            `<div class="card"><h1>ログイン</h1><label>ログインID<input id="uid"></label><div id="second" hidden><label>パスワード<input id="secret" type="password"></label></div><p id="note"></p><button type="button" id="go">次へ</button></div><script>
            const note = (text) => { document.getElementById('note').textContent = text; };
            ${sending(view, "{ uid: document.getElementById('uid').value, secret: document.getElementById('secret').value }")}
            document.getElementById('go').addEventListener('click', () => {
              const second = document.getElementById('second');
              if (!second.hidden) return send();
              second.hidden = false;
              document.getElementById('go').textContent = 'ログイン';
            });</script>`,
          ),
      },
    },
  },
];
