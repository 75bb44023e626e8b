import { document, form, nameAndPassword, refusal, type GalleryPage } from '../page.ts';

/** Pages at which a login ends. */
export const barred: GalleryPage[] = [
  {
    name: 'picture-en',
    about: 'The form asks for the text of a picture.',
    lang: 'en',
    outcome: { right: 'captcha' },
    screens: {
      login: {
        reads: 'captcha identifier:identifier password:password captcha:text',
        submit: () => ({ refused: 'The characters you entered do not match the image.' }),
        html: (view) =>
          document(
            view,
            'Login',
            `<div class="card">${form(view, `<label>Username<input name="user"></label><label>Password<input type="password" name="pass"></label><img alt="" width="120" height="40" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><label>Enter the characters you see<input name="captcha"></label>${refusal(view, '<p class="error">', '</p>')}<button>Login</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'robot-de',
    about: 'The form contains a frame of a captcha service.',
    lang: 'de',
    outcome: { right: 'captcha' },
    screens: {
      login: {
        reads: 'captcha identifier:identifier password:password',
        submit: () => ({ refused: 'Bitte bestätigen Sie, dass Sie kein Roboter sind.' }),
        html: (view) =>
          document(
            view,
            'Anmelden',
            `<div class="card">${form(view, `<label>E-Mail<input name="user"></label><label>Passwort<input type="password" name="pass"></label><iframe src="${view.base}/recaptcha" width="304" height="78" title="reCAPTCHA"></iframe>${refusal(view, '<p class="error">', '</p>')}<button>Anmelden</button>`)}</div>`,
          ),
      },
      recaptcha: {
        reads: 'unknown',
        html: (view) =>
          document(
            view,
            'reCAPTCHA',
            '<div role="checkbox" aria-checked="false" tabindex="0" style="width:30px;height:30px"></div>',
          ),
      },
    },
  },
  {
    name: 'wall-en',
    about: 'The site checks the browser before it shows anything.',
    lang: 'en',
    outcome: { right: 'captcha' },
    screens: {
      wall: {
        status: 403,
        reads: 'captcha',
        html: (view) =>
          document(
            view,
            'Just a moment...',
            '<h1>shop.example</h1><p>Verify you are human by completing the action below.</p>',
          ),
      },
    },
  },
  {
    name: 'passkey-only-en',
    about: 'A passkey is the only way in.',
    lang: 'en',
    outcome: { right: 'passkey' },
    screens: {
      login: {
        reads: 'passkey (method_passkey)',
        html: (view) =>
          document(
            view,
            'Sign in',
            '<div class="card"><h1>Sign in</h1><p>Use your passkey to sign in.</p><button type="button" id="passkey">Sign in with a passkey</button></div>',
          ),
      },
    },
  },
  {
    name: 'locked-fr',
    about: 'The account is locked after the first submit.',
    lang: 'fr',
    outcome: { right: 'locked', wrong: 'locked' },
    screens: {
      connexion: {
        reads: 'login identifier:identifier password:password',
        submit: () => ({ refused: 'Votre compte est bloqué. Contactez le support.' }),
        html: (view) =>
          document(
            view,
            'Connexion',
            `<div class="card">${refusal(view, '<div class="alert">')}${form(view, `<label>Identifiant<input name="user"></label><label>Mot de passe<input type="password" name="pass"></label><button>Connexion</button>`)}</div>`,
          ),
      },
    },
  },
  {
    name: 'maintenance-pt',
    about: 'The site is down for maintenance.',
    lang: 'pt',
    outcome: { right: 'maintenance' },
    screens: {
      entrar: {
        status: 503,
        reads: 'maintenance',
        html: (view) => document(view, 'Em manutenção', '<h1>Estamos em manutenção</h1><p>Voltaremos em breve.</p>'),
      },
    },
  },
  {
    name: 'maintenance-words-tr',
    about: 'The site is down and says so with status 200.',
    lang: 'tr',
    outcome: { right: 'maintenance' },
    screens: {
      giris: {
        reads: 'maintenance',
        html: (view) =>
          document(view, 'Bakım', '<h1>Bakım çalışması</h1><p>Sitemiz kısa süre içinde yeniden açılacak.</p>'),
      },
    },
  },
  {
    name: 'nothing-here-en',
    about: 'A page without a login: a blog with a search box, comments and a newsletter.',
    lang: 'en',
    outcome: { right: 'unsupported' },
    screens: {
      blog: {
        reads: 'unknown',
        html: (view) =>
          document(
            view,
            'Blog',
            `<header><form><input type="search" name="q" aria-label="Search"><button>Search</button></form></header><article><h1>How bees find their way</h1><p>They dance.</p></article><form><label>Name<input name="name"></label><label>Comment<textarea name="comment"></textarea></label><button>Post comment</button></form><form><label>Get our newsletter<input type="email" name="email"></label><button>Subscribe</button></form><a href="${view.base}?about">About</a>`,
          ),
      },
    },
  },
  {
    name: 'basic-en',
    about: 'The browser asks for the name and the password, not the page.',
    lang: 'en',
    outcome: { right: 'success' },
    screens: { door: { basic: true, reads: 'basic', html: () => '' } },
  },
  {
    name: 'hangul-ko',
    about: 'Korean, with the identifier called ID and a box that keeps it.',
    lang: 'ko',
    outcome: { right: 'success', wrong: 'credentials' },
    screens: {
      login: {
        reads: 'login identifier:identifier password:password',
        submit: nameAndPassword('id', 'pw', '아이디 또는 비밀번호가 일치하지 않습니다.'),
        html: (view) =>
          document(
            view,
            '로그인',
            `<div class="card"><h1>로그인</h1>${form(view, `<input name="id" placeholder="아이디"><input name="pw" type="password" placeholder="비밀번호"><label><input type="checkbox" name="keep">아이디 저장</label>${refusal(view, '<div class="error_message">')}<button>로그인</button>`)}<a href="${view.base}/join">회원가입</a> <a href="${view.base}/find">비밀번호 찾기</a></div>`,
          ),
      },
    },
  },
];
