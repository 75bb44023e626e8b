import { insidePage } from '../site.ts';
import { account, form, script, type Cause } from './shell.ts';

/** Pages that let one wait, by their own timers and loops. */

const totp = 'JBSWY3DPEHPK3PXP';
const refusal = 'Wrong user name or password.';

/** The form asks for a code once the password was right, and forgets that when the name is edited. */
export const codeInForm: Cause = {
  number: 2,
  name: 'code-in-form',
  language: 'en',
  about: 'A field for a code comes up in the form after the first submit, and goes when the name is edited.',
  account: { ...account, totp },
  ends: 'logged in',
  serve(visit, site) {
    const { path, form: given, state } = visit;
    if (path === '/api/login') {
      if (!site.knows(given['user'], given['pass'])) return visit.json({ error: refusal }, 401);
      if (!given['code']) return visit.json({ code: true }, 401);
      if (!site.takes(given['code'])) return visit.json({ code: true, error: 'The code is not right.' }, 401);
      visit.logIn();
      return visit.json({});
    }
    if (path === '/logout') {
      delete state.user;
      return visit.redirect('/');
    }
    if (path !== '/') return;
    if (state.user) return visit.inside(insidePage('The mill', 'Log out', '<p>All sacks are full.</p>'));
    visit.html(
      `<h1>The mill</h1>${form()}${script(`
      const form = el('form');
      el('user').addEventListener('input', () => el('more')?.remove());
      form.onsubmit = async (event) => {
        event.preventDefault();
        const given = { user: el('user').value, pass: el('pass').value, code: el('code')?.value };
        const { status, code, error = '' } = await api('/api/login', given);
        if (status === 200) return void (location.href = '/');
        el('error').textContent = error;
        if (code && !el('more')) el('pass').parentElement.insertAdjacentHTML('afterend',
          '<p id="more"><label>Code of your authenticator app <input id="code" name="code" inputmode="numeric" autocomplete="one-time-code"></label></p>');
      };`)}`,
    );
  },
};

/** The page computes for seven seconds at a time, and answers nothing meanwhile. */
export const busyPage: Cause = {
  number: 7,
  name: 'busy-page',
  language: 'en',
  about: 'The page computes when its form is touched, and again before it sends the password.',
  account,
  ends: 'logged in',
  serve(visit, site) {
    const { path, form: given, state } = visit;
    if (path === '/api/login') {
      if (!site.knows(given['user'], given['pass'])) return visit.json({ error: refusal }, 401);
      visit.logIn();
      return visit.json({});
    }
    if (path === '/logout') {
      delete state.user;
      return visit.redirect('/');
    }
    if (path !== '/') return;
    if (state.user) return visit.inside(insidePage('The vault', 'Log out', '<p>Nothing is missing.</p>'));
    visit.html(
      `<h1>The vault</h1>${form()}${script(`
      const compute = () => { for (const until = performance.now() + 7000; performance.now() < until;); };
      el('pass').addEventListener('focus', compute, { once: true });
      el('form').onsubmit = async (event) => {
        event.preventDefault();
        compute();
        const { status, error } = await api('/api/login', { user: el('user').value, pass: el('pass').value });
        if (status === 200) return void (location.href = '/');
        el('error').textContent = error;
      };`)}`,
    );
  },
};

/** A form that is drawn eleven seconds after the page, below a logo and a button that were there at once. */
export const slowStart: Cause = {
  number: 8,
  name: 'slow-start',
  language: 'en',
  about: 'The page says "Initializing…" for eleven seconds.',
  account,
  ends: 'logged in',
  serve(visit, site) {
    const { path, form: given, state } = visit;
    if (path === '/api/login') {
      if (!site.knows(given['user'], given['pass'])) return visit.json({ error: refusal }, 401);
      visit.logIn();
      return visit.json({});
    }
    if (path === '/logout') {
      delete state.user;
      return visit.redirect('/');
    }
    if (path !== '/') return;
    if (state.user) return visit.inside(insidePage('The kiln', 'Log out', '<p>Twelve pots are drying.</p>'));
    visit.html(
      `<header><a href="/">Kiln</a></header><main id="main"><p>Initializing…</p><button onclick="location.reload()">Reload</button></main>${script(`
      setTimeout(() => {
        el('main').innerHTML = ${JSON.stringify(form())};
        el('form').onsubmit = async (event) => {
          event.preventDefault();
          const { status, error } = await api('/api/login', { user: el('user').value, pass: el('pass').value });
          if (status === 200) return void (location.href = '/');
          el('error').textContent = error;
        };
      }, 11000);`)}`,
    );
  },
};
