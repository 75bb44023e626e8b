import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { portOf } from './mux-server.ts';

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><link rel="icon" href="data:,">${body}`;

/** Pages with forms. `OTHER` is replaced by the same server under another host name: another site. */
const pages: Record<string, string> = {
  '/login': page(
    'Sign in',
    `<style>.cover { position: fixed; left: 0; bottom: 0; width: 200px; height: 60px; background: #eee }
      .under { position: fixed; left: 20px; bottom: 20px } .readers { position: absolute; clip: rect(0 0 0 0); width: 1px; height: 1px; overflow: hidden }
      .box { opacity: 0; position: absolute; width: 13px; height: 13px }</style>
    <h1>Welcome back</h1>
    <form id="login" action="/welcome" method="post">
      <input type="hidden" name="csrf" value="planted-csrf">
      <label for="user">E-mail address</label> <input id="user" name="user" type="email" autocomplete="username" required>
      <div><span>Password</span> <input name="pass" type="password" value="planted-value" maxlength="64" aria-describedby="rule"></div>
      <p id="rule">At least <b>eight</b> characters.</p>
      <label><input class="box" type="checkbox" name="remember"> Keep me signed in</label>
      <select name="realm"><option value="local">Local</option><option value="ldap">LDAP</option></select>
      <button>Sign in</button> <a href="/forgot">Forgot it?</a>
    </form>
    <form role="search"><input type="search" name="elements" placeholder="Search"><input name="parentNode"></form>
    <button style="display: none">Hidden</button> <button disabled>Disabled</button>
    <div class="readers">For screen readers</div>
    <p role="alert" class="error">Your session has ended.</p>
    <div style="cursor: pointer" class="btn-sso">Continue with Example</div>
    <button class="under">Covered</button><div class="cover"></div>
    <div id="host"></div>
    <div style="height: 1500px"></div>
    <iframe src="OTHER/inner" width="400" height="200"></iframe>
    <iframe src="/inner" style="display: none"></iframe>
    <script>
      document.getElementById('host').attachShadow({ mode: 'open' }).innerHTML =
        '<label>Tenant <input name="tenant"></label><button>In the shadow</button>';
    </script>`,
  ),
  '/inner': page(
    'Inner',
    `<div style="height: 300px"></div><label>Card code <input name="code" autocomplete="one-time-code"></label>
    <button onclick="document.querySelector('p').textContent = 'Got ' + document.querySelector('input').value.length">Check</button><p>Nothing yet</p>`,
  ),
  '/welcome': page('Welcome', '<h1>Hello</h1><a href="/logout">Sign out</a>'),
  /** A field that a framework controls: it shows the state, and the state follows real input only. */
  '/controlled': page(
    'Controlled',
    `<label>Name <input id="name"></label><button disabled>Next</button><p id="state"></p>
    <script>
      const field = document.getElementById('name'), state = { value: '' };
      field.addEventListener('input', (event) => {
        if (event.isTrusted) state.value = field.value;
        field.value = state.value;
        document.querySelector('button').disabled = state.value.length < 3;
      });
      let keys = 0;
      field.addEventListener('keyup', () => (document.getElementById('state').textContent = ++keys + ' keys, ' + state.value.length + ' characters'));
      document.querySelector('button').onclick = async () => {
        document.querySelector('p').textContent = await (await fetch('/later')).text();
      };
    </script>`,
  ),
  '/boxes': page(
    'Boxes',
    `<form>${'<input maxlength="1" inputmode="numeric">'.repeat(6)}</form><p></p>
    <script>
      const boxes = [...document.querySelectorAll('input')];
      for (const [i, box] of boxes.entries()) box.oninput = () => {
        if (box.value && boxes[i + 1]) boxes[i + 1].focus();
        if (boxes.every(({ value }) => value)) document.querySelector('p').textContent = 'Complete: ' + boxes.map(({ value }) => value).join('');
      };
    </script>`,
  ),
  /** Polls without end, animates, and shows a clock. */
  '/restless': page(
    'Restless',
    `<p id="clock"></p><div id="mover" style="position: absolute">x</div><button>Go</button><p id="outcome"></p>
    <script>
      const poll = () => fetch('/never?' + Math.random()).then(poll, () => {});
      poll();
      const tick = () => {
        document.getElementById('clock').textContent = performance.now();
        document.getElementById('mover').style.left = (performance.now() % 300) + 'px';
        requestAnimationFrame(tick);
      };
      tick();
      document.querySelector('button').onclick = async () => {
        document.getElementById('outcome').textContent = await (await fetch('/later', { method: 'POST' })).text();
      };
    </script>`,
  ),
  '/opener': page(
    'Opener',
    `<button onclick="window.open('/popup', 'sso', 'width=400,height=400')">With Example</button>`,
  ),
  '/popup': page('Popup', `<input name="user"><button onclick="window.close()">Done</button>`),
  /** A single-page application that renews its token with each visit, whichever page is visited. */
  '/tokens': page('Tokens', `<script>localStorage.setItem('token', crypto.randomUUID())</script>`),
  '/robots.txt': page('Robots', `<script>localStorage.setItem('token', crypto.randomUUID())</script>`),
  '/dialog': page('Dialog', `<button onclick="alert('Wrong password'); document.title = 'After'">Try</button>`),
  /** A field that gives the focus away while it is typed into. */
  '/thief': page(
    'Thief',
    `<input name="mine"><input name="other">
    <script>let keys = 0; document.querySelector('[name=mine]').onkeydown = () => ++keys === 3 && document.querySelector('[name=other]').focus();</script>`,
  ),
  '/pickers': page(
    'Pickers',
    `<form>${['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range'].map((type) => `<label>${type} <input type="${type}" name="${type}"></label>`).join('')}</form>
    <p></p>
    <script>
      const heard = {};
      for (const kind of ['input', 'change']) addEventListener(kind, ({ target }) => {
        (heard[target.name] ??= []).push(kind, target.value);
        document.querySelector('p').textContent = JSON.stringify(heard[target.name]);
      });
    </script>`,
  ),
  '/rewriting': page(
    'Rewriting',
    `<input name="late"><input name="tidy"><input name="short" maxlength="3"><p></p>
    <script>
      const [late, tidy, short] = document.querySelectorAll('input');
      let keys = 0;
      late.addEventListener('keydown', () => ++keys === 4 && late.select());
      tidy.oninput = () => (tidy.value = tidy.value.replaceAll(' ', ''));
      document.onkeyup = () => (document.querySelector('p').textContent = [late, tidy, short].map(({ value }) => value).join('/'));
    </script>`,
  ),
  '/passkey': page(
    'Passkey',
    `<button id="create">Create</button><button id="use">Use</button><p></p>
    <script>
      const say = (words) => (document.querySelector('p').textContent = words);
      const challenge = new Uint8Array(32), user = { id: new Uint8Array([1, 2, 3]), name: 'alice', displayName: 'Alice' };
      document.getElementById('create').onclick = () => navigator.credentials.create({ publicKey: {
        challenge, user, rp: { name: 'Site' }, pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' } } }).then(() => say('created'), (error) => say('failed: ' + error.name));
      document.getElementById('use').onclick = () => navigator.credentials.get({ publicKey: { challenge, userVerification: 'required' } })
        .then(() => say('used'), (error) => say('failed: ' + error.name));
    </script>`,
  ),
};

export async function formsSite() {
  const held = new Set<ServerResponse>();
  const answers: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://site');
    request.resume();
    if (pathname === '/never') return void held.add(response);
    if (pathname === '/round') return void response.writeHead(302, { location: '/round' }).end();
    if (pathname === '/later') return void setTimeout(() => response.end('The outcome'), 300);
    if (pathname === '/basic') {
      const given = Buffer.from((request.headers.authorization ?? '').replace(/^Basic /, ''), 'base64').toString();
      if (given) answers.push(given);
      if (given === 'alice:right')
        return void response.writeHead(200, { 'content-type': 'text/html' }).end(pages['/welcome']);
      return void response
        .writeHead(401, { 'www-authenticate': 'Basic realm="The vault"', 'content-type': 'text/html' })
        .end(page('No entry', '<h1>Who are you?</h1>'));
    }
    const found = pages[pathname];
    if (found === undefined) return void response.writeHead(404, { 'content-type': 'text/plain' }).end('none');
    const headers = {
      'content-type': 'text/html',
      ...(pathname === '/welcome' && { 'set-cookie': 'sid=planted; HttpOnly' }),
    };
    response.writeHead(200, headers).end(found.replaceAll('OTHER', `http://localhost:${portOf(server)}`));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  return {
    url: `http://127.0.0.1:${port}`,
    /** Another site, and with isolation of sites another process. */
    otherUrl: `http://localhost:${port}`,
    /** The users and passwords that the site was given by HTTP Basic. */
    answers,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
