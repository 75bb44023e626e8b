import { insidePage, type LoginCase } from '../site.ts';

/** Sites that no credential opens. Each has the reasons that are right. */
export const refusals: LoginCase[] = [
  {
    name: 'english-captcha',
    language: 'en',
    about: 'the form contains a captcha, and the server asks for its token',
    account: { username: 'casey@shop.example', password: 'Basket-Case' },
    ends: { codes: ['captcha_blocked', 'bot_detected'], orWaits: 'AWAITING_EXTERNAL_ACTION' },
    serve(visit, site) {
      if (visit.path === '/recaptcha/api2/anchor')
        return visit.html(
          '<div class="rc-anchor"><span role="checkbox" aria-checked="false" aria-label="I\'m not a robot" tabindex="0" style="display:inline-block;width:28px;height:28px;border:2px solid #999"></span> I\'m not a robot</div>',
        );
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST') {
        site.knows(visit.form['email'], visit.form['password']);
        error = '<div role="alert" class="error">Please confirm that you are not a robot.</div>';
      }
      visit.html(`<h1>Sign in</h1>${error}<form method="post"><label>Email <input type="email" name="email"></label><label>Password <input type="password" name="password"></label>
        <div class="g-recaptcha" data-sitekey="6Lxxxx"><iframe title="reCAPTCHA" src="/recaptcha/api2/anchor" width="304" height="78"></iframe><textarea name="g-recaptcha-response" style="display:none"></textarea></div><button>Sign in</button></form>`);
    },
  },
  {
    name: 'romanian-locked',
    language: 'ro',
    about: 'the account is locked: the right password is answered with that, the form stays',
    account: { username: 'andrei', password: 'Carpati-2500' },
    ends: { codes: ['website_error', 'max_attempts_reached'] },
    serve(visit, site) {
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST')
        error = site.knows(visit.form['user'], visit.form['parola'])
          ? '<div class="alert alert-warning">Contul dumneavoastră a fost blocat după prea multe încercări. Contactați administratorul.</div>'
          : '<div class="alert alert-danger">Utilizator sau parolă incorecte.</div>';
      visit.html(
        `<h1>Autentificare</h1>${error}<form method="post"><label>Utilizator <input name="user"></label><label>Parolă <input type="password" name="parola"></label><button>Intră în cont</button></form>`,
      );
    },
  },
  {
    name: 'english-locked-page',
    language: 'en',
    about: 'the account is locked: the right password leads to a page that says so and has no form',
    account: { username: 'drew', password: 'Padlock-77' },
    ends: { codes: ['website_error', 'max_attempts_reached'] },
    serve(visit, site) {
      if (visit.path === '/locked')
        return visit.html(
          '<h1>Your account has been locked</h1><p>For your security we locked your account. Call us on 555-0100 to unlock it.</p><a href="/">Back</a>',
        );
      if (visit.path !== '/') return;
      let error = '';
      if (visit.method === 'POST') {
        if (site.knows(visit.form['username'], visit.form['password'])) return visit.redirect('/locked');
        error = '<p class="error">Login failed.</p>';
      }
      visit.html(
        `<form method="post">${error}<input name="username" placeholder="Username"><input type="password" name="password" placeholder="Password"><button>Login</button></form>`,
      );
    },
  },
  {
    name: 'norwegian-maintenance',
    language: 'no',
    about: 'down for maintenance, with status 503',
    account: { username: 'ola', password: 'Fjord-1' },
    anyPassword: true,
    ends: { codes: ['website_error', 'network_error'] },
    serve(visit) {
      visit.response.setHeader('retry-after', '3600');
      visit.html('<h1>Vi er straks tilbake</h1><p>Tjenesten er under planlagt vedlikehold.</p>', { status: 503 });
    },
  },
  {
    name: 'english-no-login',
    language: 'en',
    about: 'a page of a club without any login: a search box, a newsletter, a contact form',
    account: { username: 'nobody@club.example', password: 'None-at-all' },
    anyPassword: true,
    ends: { codes: ['login_form_not_found', 'navigation_confused'] },
    serve(visit) {
      if (visit.path !== '/') return;
      visit.html(`<h1>Chess club</h1><form role="search"><input type="search" placeholder="Search"></form><p>We meet on Thursdays.</p>
        <h2>Contact</h2><form method="post" action="/contact"><input name="name" placeholder="Your name"><input type="email" name="email" placeholder="Your email"><textarea name="m" placeholder="Message"></textarea><button>Send</button></form>
        <form><input type="email" placeholder="Email"><button>Subscribe to our newsletter</button></form>`);
    },
  },
  {
    name: 'english-elsewhere',
    language: 'en',
    about: 'the login is on another site, which the connection does not allow',
    second: 'not allowed',
    account: { username: 'taylor', password: 'Elsewhere-5' },
    anyPassword: true,
    ends: { codes: ['domain_not_allowed'] },
    serve(visit, site) {
      if (visit.path === '/')
        return visit.html(`<h1>Team wiki</h1><a href="${site.other}/sso">Log in with the company account</a>`);
      if (visit.path !== '/sso') return;
      visit.html(
        '<h1>Company account</h1><form method="post"><label>User <input name="u"></label><label>Password <input type="password" name="p"></label><button>Log in</button></form>',
      );
    },
  },
  {
    name: 'english-throttled',
    language: 'en',
    about: 'too many attempts from this address: status 429 for each submit',
    account: { username: 'quinn', password: 'Slow-Down-1' },
    anyPassword: true,
    ends: { codes: ['website_error', 'bot_detected', 'max_attempts_reached'] },
    serve(visit, site) {
      if (visit.path !== '/') return;
      if (visit.method === 'POST') {
        site.knows(visit.form['username'], visit.form['password']);
        return visit.html(
          '<h1>Too many requests</h1><p>Too many login attempts. Please wait 15 minutes and try again.</p>',
          { status: 429 },
        );
      }
      visit.html(
        '<h1>Log in</h1><form method="post"><label>Username <input name="username"></label><label>Password <input type="password" name="password"></label><button>Log in</button></form>',
      );
    },
  },
  {
    name: 'english-never-in',
    language: 'en',
    about: 'takes the password without a word and shows the login again: a loop of redirects between pages',
    account: { username: 'jo', password: 'Round-And-Round' },
    anyPassword: true,
    ends: { codes: ['stuck_in_loop', 'credentials_invalid', 'max_attempts_reached', 'website_error'] },
    serve(visit, site) {
      if (visit.path === '/auth') {
        site.knows(visit.form['username'], visit.form['password']);
        return visit.redirect('/');
      }
      if (visit.path === '/home') return visit.html(insidePage('Home', 'Log out'));
      if (visit.path !== '/') return;
      visit.html(
        '<h1>Log in</h1><form method="post" action="/auth"><label>Username <input name="username"></label><label>Password <input type="password" name="password"></label><button>Log in</button></form>',
      );
    },
  },
];
