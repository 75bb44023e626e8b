import { account, answerLogin, answerUser, form, script, type Cause } from './shell.ts';

/** Applications that keep a token in the storage of the browser. */

/** The shell of the application has its way out before the server has said that nobody is logged in. */
export const earlyLogout: Cause = {
  number: 1,
  name: 'early-logout',
  language: 'en',
  about: 'The shell shows "Logout" for three seconds before it draws the form.',
  account,
  ends: 'logged in',
  serve(visit, site) {
    if (visit.path === '/api/login') return answerLogin(visit, site);
    if (visit.path === '/api/me') return answerUser(visit, site, { name: account.username });
    if (visit.path !== '/') return;
    visit.html(
      `<header><b>Orchard</b> <button id="out">Logout</button></header><main id="main"></main>${script(`
      el('out').onclick = () => { localStorage.clear(); location.reload(); };
      const ask = () => {
        el('out').remove();
        el('main').innerHTML = ${JSON.stringify(form())};
        el('form').onsubmit = async (event) => {
          event.preventDefault();
          const { token, error } = await api('/api/login', { user: el('user').value, pass: el('pass').value });
          if (!token) return void (el('error').textContent = error);
          localStorage.setItem('token', token);
          location.reload();
        };
      };
      setTimeout(async () => {
        const { status, name } = await api('/api/me');
        if (status !== 200) return ask();
        el('main').innerHTML = '<h1>Trees of ' + name + '</h1><button>Plant</button> <button>Prune</button>';
      }, 3000);`)}`,
    );
  },
};

/** The way in and the way out are in one menu that is closed, and everything else is for everyone. */
export const closedMenu: Cause = {
  number: 3,
  name: 'closed-menu',
  language: 'en',
  about: 'A token in the storage, and "Logout" in a closed menu of a page that everyone sees.',
  account,
  ends: 'logged in',
  serve(visit, site) {
    if (visit.path === '/api/login') return answerLogin(visit, site);
    if (visit.path === '/api/me') return answerUser(visit, site, { name: account.username });
    if (visit.path !== '/') return;
    visit.html(
      `<header><b>Quarry</b> <button id="menu" aria-haspopup="true" aria-expanded="false">Account</button>
        <div id="items"></div></header>
      <main><h1>Stones of the week</h1><ul><li><a href="#granite">Granite</a><li><a href="#basalt">Basalt</a></ul>
        <div id="place"></div></main>${script(`
      let user;
      const items = () => {
        const open = el('menu').getAttribute('aria-expanded') === 'true';
        el('items').innerHTML = !open ? '' : user ? '<button id="out">Logout</button>' : '<button id="in">Sign in</button>';
        if (el('out')) el('out').onclick = () => { localStorage.clear(); location.reload(); };
        if (el('in')) el('in').onclick = ask;
      };
      const ask = () => {
        el('menu').setAttribute('aria-expanded', 'false');
        items();
        el('place').innerHTML = ${JSON.stringify(form())};
        el('form').onsubmit = async (event) => {
          event.preventDefault();
          const { token, error } = await api('/api/login', { user: el('user').value, pass: el('pass').value });
          if (!token) return void (el('error').textContent = error);
          localStorage.setItem('token', token);
          location.reload();
        };
      };
      el('menu').onclick = () => {
        el('menu').setAttribute('aria-expanded', String(el('menu').getAttribute('aria-expanded') !== 'true'));
        items();
      };
      api('/api/me').then(({ name }) => { user = name; items(); });`)}`,
    );
  },
};

/** An application that holds a dead token for a login: it has no form, and no way to one. */
export const deadToken: Cause = {
  number: 3,
  name: 'dead-token',
  language: 'en',
  about: 'With a token that is dead, the page shows neither an account nor a form.',
  account,
  ends: 'logged in',
  serve(visit, site) {
    if (visit.path === '/api/login') return answerLogin(visit, site);
    if (visit.path === '/api/boats') return answerUser(visit, site, { boats: ['Anna', 'Berta', 'Clara'] });
    if (visit.path.startsWith('/api/')) return;
    visit.html(
      `<header><b>Harbour</b></header><main id="main"></main>${script(`
      const ask = () => {
        el('main').innerHTML = ${JSON.stringify(form())};
        el('form').onsubmit = async (event) => {
          event.preventDefault();
          const { token, error } = await api('/api/login', { user: el('user').value, pass: el('pass').value });
          if (!token) return void (el('error').textContent = error);
          localStorage.setItem('token', token);
          location.reload();
        };
      };
      const show = async () => {
        const { boats } = await api('/api/boats');
        el('main').innerHTML = !boats
          ? '<p>The boats did not come in.</p><button onclick="show()">Once more</button>'
          : '<h1>Boats</h1>' + boats.map((name) => '<button>' + name + '</button>').join(' ') +
            ' <button onclick="localStorage.clear(), location.reload()">Log out</button>';
      };
      if (localStorage.getItem('token')) show();
      else ask();`)}`,
    );
  },
};
