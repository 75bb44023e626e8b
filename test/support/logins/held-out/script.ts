import { insidePage, type LoginCase } from '../site.ts';

/** Pages that a script renders. */
export const scripted: LoginCase[] = [
  {
    name: 'greek-spa',
    language: 'el',
    about:
      'an empty page until a script has asked the server; fields follow their state, the button wakes up with them',
    account: { username: 'nikos@paradeigma.example', password: 'Thalassa;99' },
    ends: 'logged in',
    cookie: { name: 'sess', maxAge: 86_400 },
    async serve(visit, site) {
      if (visit.path === '/api/me') {
        await new Promise((resolve) => setTimeout(resolve, 600));
        if (!visit.state.user) return visit.json({ error: 'anonymous' }, 401);
        site.seen++;
        return visit.json({ name: 'Νίκος' });
      }
      if (visit.path === '/api/login') {
        await new Promise((resolve) => setTimeout(resolve, 900));
        if (!site.knows(visit.form['email'], visit.form['password'])) return visit.json({ error: 'bad' }, 422);
        visit.logIn();
        return visit.json({ ok: true });
      }
      if (visit.path !== '/' && visit.path !== '/eisodos') return;
      visit.html('<div id="root"></div>', { title: 'Πύλη', head: `<script type="module">${greekSpa}</script>` });
    },
  },
  {
    name: 'english-shadow',
    language: 'en',
    about:
      'custom elements within custom elements: the form is in open shadow roots; token in local storage, no cookie',
    account: { username: 'robin', password: 'Shadow&Light' },
    ends: 'logged in',
    serve(visit, site) {
      const token = visit.request.headers.authorization?.replace('Bearer ', '') ?? '';
      if (visit.path === '/api/session' && visit.method === 'POST') {
        if (!site.knows(visit.form['u'], visit.form['p'])) return visit.json({ message: 'Sign-in failed' }, 401);
        const made = `t${Date.now()}${site.submits}`;
        site.states.set(made, { user: 'robin' });
        return visit.json({ token: made });
      }
      if (visit.path === '/api/me') {
        if (!site.states.get(token)?.user) return visit.json({}, 401);
        site.seen++;
        return visit.json({ name: 'Robin' });
      }
      if (visit.path === '/')
        visit.html('<app-shell></app-shell>', { head: `<script type="module">${shadowApp}</script>` });
    },
  },
  {
    name: 'swedish-frame',
    language: 'sv',
    second: 'allowed',
    about: 'the form is in a frame of another origin, which notifies the page around it when it is done',
    account: { username: 'astrid', password: 'Midsommar-Krans' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.path === '/') {
        if (visit.state.user) return visit.inside(insidePage('Välkommen Astrid', 'Logga ut'));
        return visit.html(`<h1>Föreningen</h1><p>Medlemssidor</p>
          <iframe title="Inloggning" src="${site.other}/ram" width="420" height="260"></iframe>
          <script>addEventListener('message', (e) => { if (e.data && e.data.biljett) location = '/biljett?b=' + e.data.biljett; });</script>`);
      }
      if (visit.path === '/biljett') {
        if (visit.query.get('b') === site.sent && site.sent) visit.logIn();
        site.sent = undefined;
        return visit.redirect('/');
      }
      if (visit.path !== '/ram') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['anv'], visit.form['los']))
          return visit.html(`<script>parent.postMessage({ biljett: '${site.send()}' }, '*')</script>`);
        error = '<p role="alert">Fel användarnamn eller lösenord</p>';
      }
      visit.html(`<form method="post" action="/ram">${error}<p><label>Användarnamn <input name="anv"></label></p>
        <p><label>Lösenord <input type="password" name="los"></label></p><button>Logga in</button></form>`);
    },
  },
  {
    name: 'thai-no-form',
    language: 'th',
    about: 'no form element: inputs with placeholders, a div as the button, no submit by the enter key',
    account: { username: '0812345678', password: 'ช้างไทย77' },
    ends: 'logged in',
    values: { username: '0812345678', password: 'ช้างไทย77' },
    serve(visit, site) {
      if (visit.path === '/login' && visit.method === 'POST') {
        if (!site.knows(visit.form['u'], visit.form['p'])) return visit.json({ ok: false });
        visit.logIn();
        return visit.json({ ok: true });
      }
      if (visit.path !== '/') return;
      if (visit.state.user) return visit.inside(insidePage('สวัสดีคุณสมชาย', 'ออกจากระบบ'));
      visit.html(`<style>.b{background:#06c;color:#fff;padding:12px;width:220px;text-align:center;cursor:pointer}</style>
        <h3>ร้านค้าออนไลน์</h3><div class="box"><input class="i" type="tel" placeholder="เบอร์โทรศัพท์"><br>
        <input class="i" type="password" placeholder="รหัสผ่าน"><br><div class="b" tabindex="0">เข้าสู่ระบบ</div>
        <div class="m" style="color:red"></div></div>
        <script>document.querySelector('.b').addEventListener('click', async () => {
          const [u, p] = [...document.querySelectorAll('.i')].map((i) => i.value);
          const r = await (await fetch('/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ u, p }) })).json();
          if (r.ok) location.reload(); else document.querySelector('.m').textContent = 'เบอร์โทรศัพท์หรือรหัสผ่านไม่ถูกต้อง';
        });</script>`);
    },
  },
  {
    name: 'english-modal',
    language: 'en',
    about:
      'the login is a dialog that a button in a menu opens; the page never reloads, has a search box and a newsletter form',
    account: { username: 'morgan@news.example', password: 'Broadsheet1' },
    ends: 'logged in',
    cookie: { name: 'auth', maxAge: 3600 },
    serve(visit, site) {
      if (visit.path === '/session' && visit.method === 'POST') {
        if (!site.knows(visit.form['email'], visit.form['password'])) return visit.json({ error: 'x' }, 401);
        visit.logIn();
        return visit.json({ name: 'Morgan' });
      }
      if (visit.path === '/whoami') {
        if (!visit.state.user) return visit.json({});
        site.seen++;
        return visit.json({ name: 'Morgan' });
      }
      if (visit.path === '/') visit.html(newsPage, { title: 'The Daily Broadsheet' });
    },
  },
  {
    name: 'chinese-tabs',
    language: 'zh',
    about: 'the code by SMS is the default; the password is behind the second tab, and the terms have to be ticked',
    account: { username: '13800138000', password: 'changcheng888' },
    ends: 'logged in',
    serve(visit, site) {
      if (visit.path === '/api/login') {
        if (visit.form['agree'] !== 'yes') return visit.json({ msg: '请先阅读并同意用户协议' }, 400);
        if (!site.knows(visit.form['account'], visit.form['pwd'])) return visit.json({ msg: '账号或密码错误' }, 400);
        visit.logIn();
        return visit.json({ ok: true });
      }
      if (visit.path !== '/') return;
      if (visit.state.user) return visit.inside(insidePage('我的订单', '退出登录', '<p>欢迎回来</p>'));
      visit.html(chineseTabs, { title: '登录' });
    },
  },
];

const greekSpa = `
const root = document.getElementById('root');
const state = { email: '', password: '', error: '', busy: false };
function field(name, type, label) {
  const wrap = document.createElement('div');
  const input = document.createElement('input');
  input.type = type; input.id = 'f' + name; input.setAttribute('aria-label', label);
  // Only what arrives as an input event counts; anything else is written over, as frameworks do.
  input.addEventListener('input', (e) => { if (e.isTrusted) state[name] = input.value; input.value = state[name]; update(); });
  input.addEventListener('blur', () => { input.value = state[name]; });
  wrap.innerHTML = '<span>' + label + '</span>';
  wrap.append(input);
  return wrap;
}
const button = document.createElement('button');
const error = Object.assign(document.createElement('div'), { className: 'toast' });
function update() { button.disabled = !state.email || !state.password || state.busy; button.textContent = state.busy ? '…' : 'Είσοδος'; error.textContent = state.error; }
async function login() {
  state.busy = true; state.error = ''; update();
  const r = await fetch('/api/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: state.email, password: state.password }) });
  state.busy = false;
  if (r.ok) return start();
  state.error = 'Λάθος στοιχεία σύνδεσης'; update();
}
button.addEventListener('click', login);
async function start() {
  root.innerHTML = '<div class="spinner">Φόρτωση…</div>';
  const me = await fetch('/api/me');
  root.innerHTML = '';
  if (me.ok) {
    history.replaceState(null, '', '/');
    root.innerHTML = '<h1>Καλώς ήρθες, ' + (await me.json()).name + '</h1><button id="out">Αποσύνδεση</button><ul><li>Μηνύματα</li></ul>';
  } else {
    history.replaceState(null, '', '/eisodos');
    root.append(field('email', 'email', 'Ηλεκτρονικό ταχυδρομείο'), field('password', 'password', 'Κωδικός'), button, error);
    update();
  }
}
start();`;

const shadowApp = `
class TextField extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({ mode: 'open' });
    root.innerHTML = '<label><span>' + this.getAttribute('label') + '</span> <input type="' + (this.getAttribute('type') || 'text') + '"></label>';
  }
  get value() { return this.shadowRoot.querySelector('input').value; }
}
customElements.define('text-field', TextField);
class SignIn extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({ mode: 'open' });
    root.innerHTML = '<h2>Sign in</h2><text-field label="User"></text-field><text-field label="Password" type="password"></text-field><button>Continue</button><p part="note"></p>';
    root.querySelector('button').addEventListener('click', async () => {
      const [u, p] = [...root.querySelectorAll('text-field')].map((f) => f.value);
      const r = await fetch('/api/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ u, p }) });
      const answer = await r.json();
      if (!r.ok) { root.querySelector('p').textContent = answer.message; return; }
      localStorage.setItem('token', answer.token);
      document.querySelector('app-shell').show();
    });
  }
}
customElements.define('sign-in', SignIn);
class Shell extends HTMLElement {
  connectedCallback() { this.attachShadow({ mode: 'open' }); this.show(); }
  async show() {
    const token = localStorage.getItem('token');
    const me = token ? await fetch('/api/me', { headers: { authorization: 'Bearer ' + token } }) : undefined;
    this.shadowRoot.innerHTML = me && me.ok ? '<h1>Boards</h1><p>Robin</p><button>Sign out</button>' : '<sign-in></sign-in>';
  }
}
customElements.define('app-shell', Shell);`;

const newsPage = `<header><button id="burger" aria-expanded="false" aria-controls="menu" aria-label="Menu">☰</button> <b>The Daily Broadsheet</b>
<form role="search"><input type="search" name="q" placeholder="Search the news"></form>
<select aria-label="Language"><option>English</option><option>Deutsch</option><option>Français</option></select>
<div id="menu" hidden><a href="/world">World</a> <a href="/sport">Sport</a> <button id="open">Sign in</button></div></header>
<main><h1>Rain expected</h1><p>Experts agree that it is going to rain.</p>
<form id="nl"><h3>Get our newsletter</h3><input type="email" name="email" placeholder="Your email"><button>Subscribe</button></form></main>
<dialog id="dlg"><form id="li"><h2>Welcome back</h2><label>Email<input type="email" name="email"></label>
<label>Password<input type="password" name="password"></label><p id="err" aria-live="polite"></p><button>Sign in</button>
<button type="button" id="close" aria-label="Close">×</button></form></dialog>
<script>
const $ = (id) => document.getElementById(id);
$('burger').onclick = () => { $('menu').hidden = !$('menu').hidden; $('burger').setAttribute('aria-expanded', String(!$('menu').hidden)); };
$('open').onclick = () => $('dlg').showModal();
$('close').onclick = () => $('dlg').close();
function known(me) { if (me.name) { $('open').textContent = 'Sign out'; $('open').onclick = null; $('burger').insertAdjacentHTML('afterend', '<span>' + me.name + '</span>'); } }
fetch('/whoami').then((r) => r.json()).then(known);
$('nl').onsubmit = (e) => e.preventDefault();
$('li').onsubmit = async (e) => {
  e.preventDefault();
  const r = await fetch('/session', { method: 'POST', body: new URLSearchParams(new FormData(e.target)) });
  if (!r.ok) { $('err').textContent = 'That email and password do not match.'; return; }
  $('dlg').close();
  known(await r.json());
  fetch('/whoami');
};
</script>`;

const chineseTabs = `<div class="card"><ul role="tablist"><li role="tab" aria-selected="true" class="t on" onclick="show(0)">短信登录</li>
<li role="tab" aria-selected="false" class="t" onclick="show(1)">密码登录</li></ul>
<div class="p"><input placeholder="手机号"><br><input placeholder="短信验证码"> <button type="button">获取验证码</button></div>
<div class="p" style="display:none"><input id="a" placeholder="手机号/邮箱"><br><input id="w" type="password" placeholder="请输入密码"></div>
<label><input type="checkbox" id="g"> 我已阅读并同意《用户协议》和《隐私政策》</label><br>
<button id="go" type="button">登录</button><div class="tip" id="m"></div></div>
<script>
let mode = 0;
function show(n) { mode = n; document.querySelectorAll('.p').forEach((p, i) => { p.style.display = i === n ? '' : 'none'; }); document.querySelectorAll('.t').forEach((t, i) => { t.setAttribute('aria-selected', String(i === n)); t.classList.toggle('on', i === n); }); }
go.onclick = async () => {
  if (mode === 0) { m.textContent = '请输入验证码'; return; }
  const r = await fetch('/api/login', { method: 'POST', body: new URLSearchParams({ account: a.value, pwd: w.value, agree: g.checked ? 'yes' : '' }) });
  if (r.ok) location.reload(); else m.textContent = (await r.json()).msg;
};
</script>`;
