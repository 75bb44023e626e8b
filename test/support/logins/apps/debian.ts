import { createHash } from 'node:crypto';
import { freePort } from '../../listen.ts';
import { appFolder, type App } from './app.ts';

const hash = (kind: string, text: string) => createHash(kind).update(text).digest('hex');

/** A database tool of one PHP file: the form also has a list of systems, a server and a database. */
export const adminer: App = {
  name: 'adminer',
  language: 'en',
  about: 'server-rendered; the form asks for system, server and database as well; undated session cookie',
  debian: {
    adminer: '/usr/share/adminer/adminer.php',
    'php-cli': '/usr/bin/php',
    'php-sqlite3': '/usr/share/doc/php-sqlite3',
  },
  async start() {
    const host = `127.0.0.1:${await freePort()}`;
    const values = { username: 'dba', password: 'Third-Normal-Form' };
    const folder = appFolder('adminer', {
      // SQLite knows no users, so Adminer asks its operator to say who may log in, as its documentation shows.
      'index.php': `<?php
function adminer_object() {
  class Site extends Adminer {
    function login($login, $password) { return $login === '${values.username}' && $password === '${values.password}'; }
    function credentials() { return array(SERVER, $_GET['username'], ''); }
  }
  return new Site;
}
include '/usr/share/adminer/adminer.php';
`,
      'sessions/keep': '',
    });
    folder.exec('/usr/bin/php', ['-r', "(new SQLite3('shop.db'))->exec('create table goods (name text)');"]);
    const options = ['-d', `session.save_path=${folder.dir}/sessions`, '-d', 'error_reporting=0'];
    await folder.start('/usr/bin/php', [...options, '-S', host, '-t', folder.dir], [host]);
    const url = `http://${host}/?sqlite=&username=&db=shop.db`;
    return {
      loginUrl: url,
      hosts: [host],
      values,
      async loggedIn(page) {
        await page.goto(`http://${host}/?sqlite=&username=${values.username}&db=shop.db`);
        return (await page.locator('#logout').count()) > 0;
      },
      async endSessions() {
        folder.exec('/bin/sh', ['-c', 'rm -f sessions/sess_*']);
      },
      close: folder.close,
    };
  },
};

/** A notebook server: one password, no user name. */
export const jupyter: App = {
  name: 'jupyter-notebook',
  language: 'en',
  about: 'password only; the inside is a page of much script',
  debian: { 'jupyter-notebook': '/usr/bin/jupyter-notebook' },
  async start() {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const password = 'cell-by-cell';
    const salt = '0badcafe';
    const folder = appFolder('jupyter', {
      'config.py': `c.NotebookApp.password = 'sha256:${salt}:${hash('sha256', password + salt)}'
c.NotebookApp.ip = '127.0.0.1'
c.NotebookApp.port = ${port}
c.NotebookApp.port_retries = 0
c.NotebookApp.open_browser = False
c.NotebookApp.cookie_secret_file = 'cookie_secret'
`,
    });
    const start = () => folder.start('/usr/bin/jupyter-notebook', ['--config', `${folder.dir}/config.py`], [host]);
    await start();
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values: { password },
      async loggedIn(page) {
        await page.goto(`http://${host}/tree`);
        return !page.url().includes('/login');
      },
      async endSessions() {
        await folder.stop();
        folder.remove('cookie_secret');
        await start();
      },
      close: folder.close,
    };
  },
};

/** An IRC bouncer's web administration: the login is a form on the front page. */
export const znc: App = {
  name: 'znc',
  language: 'en',
  about: 'server-rendered in C++; undated session cookie',
  debian: { znc: '/usr/bin/znc' },
  async start() {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const values = { username: 'op', password: 'Netsplit-99' };
    const salt = 'abcdefghij0123456789';
    const folder = appFolder('znc', {
      'configs/znc.conf': `Version = 1.8.2
LoadModule = webadmin
<Listener web>
  Port = ${port}
  Host = 127.0.0.1
  IPv4 = true
  IPv6 = false
  SSL = false
  AllowIRC = false
  AllowWeb = true
</Listener>
<User ${values.username}>
  Admin = true
  Nick = ${values.username}
  <Pass password>
    Method = SHA256
    Hash = ${hash('sha256', values.password + salt)}
    Salt = ${salt}
  </Pass>
</User>
`,
    });
    const start = () => folder.start('/usr/bin/znc', ['--foreground', '--datadir', folder.dir], [host]);
    await start();
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values,
      async loggedIn(page) {
        await page.goto(`http://${host}/`);
        return (await page.locator('a[href*="/logout"]').count()) > 0;
      },
      async endSessions() {
        await folder.stop();
        await start();
      },
      close: folder.close,
    };
  },
};

/** A torrent client's web interface: a script renders everything, the login is a window of ExtJS. */
export const deluge: App = {
  name: 'deluge-web',
  language: 'en',
  about: 'single page of ExtJS; password only, in a window; more windows open after the login',
  debian: { 'deluge-web': '/usr/bin/deluge-web' },
  async start() {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const password = 'seed-and-leech';
    const salt = 'c26ab3bbd8b137f99cd83c2c1c0963bcc1a35cad';
    const config = `{"file":2,"format":1}${JSON.stringify({
      port,
      interface: '127.0.0.1',
      pwd_salt: salt,
      pwd_sha1: hash('sha1', salt + password),
      first_login: false,
      session_timeout: 3600,
      sessions: {},
      enabled_plugins: [],
      https: false,
      default_daemon: '',
      base: '/',
      theme: 'gray',
      show_session_speed: false,
      show_sidebar: true,
      sidebar_show_zero: false,
      sidebar_multiple_filters: true,
      language: '',
      cert: 'ssl/daemon.cert',
      pkey: 'ssl/daemon.pkey',
    })}`;
    const folder = appFolder('deluge', { 'web.conf': config });
    const start = () =>
      folder.start(
        '/usr/bin/deluge-web',
        ['--do-not-daemonize', '--config', folder.dir, '--interface', '127.0.0.1', '--port', String(port)],
        [host],
      );
    await start();
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values: { password },
      async loggedIn(page) {
        await page.goto(`http://${host}/`);
        return page.evaluate(async () => {
          const ask = { method: 'auth.check_session', params: [], id: 1 };
          const options = {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(ask),
          };
          return ((await (await fetch('/json', options)).json()) as { result: boolean }).result;
        });
      },
      async endSessions() {
        await folder.stop();
        folder.write('web.conf', config);
        await start();
      },
      close: folder.close,
    };
  },
};
