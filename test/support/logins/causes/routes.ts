import { insidePage, type Visit } from '../site.ts';
import { account, script, type Cause } from './shell.ts';

/** Applications with all pages at one path. */

const signIn = (action: string, error = '') =>
  `<h1>Sign in</h1>${error && `<p role="alert" class="error">${error}</p>`}<form method="post" action="${action}">
    <label>User name <input name="user" autocomplete="username"></label>
    <label>Password <input name="pass" type="password"></label><button>Sign in</button></form>`;

const wrong = 'Wrong user name or password.';

/** The page is in the query, and the page with the form has it for everyone. */
export const queryRouted: Cause = {
  number: 4,
  name: 'query-routed',
  language: 'en',
  about: 'All pages are at /index.php, and the query says which.',
  entry: '/index.php?page=login',
  home: '/index.php?page=overview',
  account,
  ends: 'logged in',
  serve(visit, site) {
    if (visit.path === '/') return visit.redirect('/index.php?page=overview');
    if (visit.path !== '/index.php') return;
    const page = visit.query.get('page') ?? 'overview';
    const { form, state } = visit;
    if (page === 'logout') {
      delete state.user;
      return visit.redirect('/index.php?page=login');
    }
    if (page === 'login' && visit.method === 'POST') {
      if (!site.knows(form['user'], form['pass'])) return visit.html(signIn('/index.php?page=login', wrong));
      return visit.enter('/index.php?page=overview');
    }
    if (page === 'login') return visit.html(signIn('/index.php?page=login'));
    if (!state.user) return visit.redirect('/index.php?page=login');
    visit.inside(
      `<nav><a href="?page=overview">Overview</a> <a href="?page=wells">Wells</a> <a href="?page=logout">Log out</a></nav>
        <h1>Overview</h1><p>Water in all wells.</p>`,
    );
  },
};

/** The page is in the fragment, as a word. The first one has the form for everyone. */
export const fragmentRouted: Cause = {
  number: 5,
  name: 'fragment-routed',
  language: 'en',
  about: 'All pages are at /app, and a word in the fragment says which.',
  entry: '/app',
  // With another query: a profile's tab is at the page already, and would not load it again.
  home: '/app?fresh=yes#stables',
  account,
  ends: 'logged in',
  serve(visit, site) {
    const { path, form, state } = visit;
    if (path === '/') return visit.redirect('/app');
    if (path === '/api/login') {
      if (!site.knows(form['user'], form['pass'])) return visit.json({ error: wrong }, 401);
      visit.logIn();
      return visit.json({});
    }
    if (path === '/api/horses') {
      if (!state.user) return visit.json({}, 401);
      site.seen++;
      return visit.json({ horses: ['Ajax', 'Bella'] });
    }
    if (path !== '/app') return;
    visit.html(
      `<main id="main"></main>${script(`
      const pages = {
        signin() {
          el('main').innerHTML = ${JSON.stringify(signIn('/none'))};
          const form = document.forms[0];
          form.onsubmit = async (event) => {
            event.preventDefault();
            const { status, error } = await api('/api/login', Object.fromEntries(new FormData(form)));
            if (status === 200) return void (location.hash = 'stables');
            form.insertAdjacentHTML('beforebegin', '<p role="alert" class="error">' + error + '</p>');
          };
        },
        async stables() {
          const { horses } = await api('/api/horses');
          if (!horses) return void (location.hash = 'signin');
          el('main').innerHTML = '<nav><a href="#stables">Stables</a> <a href="#hay">Hay</a> <a href="/logout">Log out</a></nav>' +
            '<h1>Stables</h1>' + horses.map((name) => '<p>' + name + '</p>').join('');
        },
      };
      const route = () => (pages[location.hash.slice(1)] ?? pages.signin)();
      addEventListener('hashchange', route);
      route();`)}`,
    );
  },
};

const room = (visit: Visit, inner: string) => visit.html(inner, { title: 'Reading room' });

/** Two ways in, of which the first leads to a place without a form. */
export const twoWays: Cause = {
  number: 6,
  name: 'two-ways',
  language: 'en',
  about: 'The page offers a guest account and staff access, and has no word of a login.',
  account,
  ends: 'logged in',
  meanwhile: { step: 'AWAITING_INPUT', choice: /staff/i, optional: true },
  serve(visit, site) {
    const { path, form, state, method } = visit;
    if (path === '/logout') {
      delete state.user;
      return visit.redirect('/');
    }
    if (path === '/guest') return room(visit, '<h1>The catalogue</h1><p>1204 books.</p><a href="/">Back</a>');
    if (path === '/staff' && method === 'POST') {
      if (site.knows(form['user'], form['pass'])) return visit.enter('/');
      return room(visit, signIn('/staff', wrong));
    }
    if (path === '/staff') return room(visit, signIn('/staff'));
    if (path !== '/') return;
    if (state.user) return visit.inside(insidePage('The desk', 'Log out', '<p>Three books came back.</p>'));
    const way = (name: string, to: string) =>
      `<button class="way" style="width: 220px; height: 60px" onclick="location.href = '${to}'">${name}</button>`;
    room(visit, `<h1>Reading room</h1>${way('Guest account', '/guest')} ${way('Staff access', '/staff')}`);
  },
};
