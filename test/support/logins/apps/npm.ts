import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { freePort } from '../../listen.ts';
import { appFolder, npmHome, type App } from './app.ts';

/** A flow editor: a script renders everything, and the token is kept in local storage. */
export const nodeRed: App = {
  name: 'node-red',
  language: 'en',
  about: 'single page, login in a dialog, token in local storage and no cookie',
  npm: { 'node-red': '4.1.8' },
  async start() {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const values = { username: 'wirer', password: 'inject-debug' };
    const home = npmHome(nodeRed);
    const folder = appFolder('node-red', {
      'settings.js': `const bcrypt = require(require.resolve('bcryptjs', { paths: ['${home}', '${home}/node_modules/@node-red/editor-api', '${home}/node_modules/node-red'] }));
module.exports = { uiHost: '127.0.0.1', uiPort: ${port}, flowFile: 'flows.json', telemetry: { enabled: false },
  adminAuth: { type: 'credentials', users: [{ username: '${values.username}', password: bcrypt.hashSync('${values.password}', 4), permissions: '*' }] },
  editorTheme: { tours: false, palette: { editable: false } } };
`,
    });
    const start = () =>
      folder.start(
        process.execPath,
        [join(home, 'node_modules/node-red/red.js'), '--userDir', folder.dir, '--settings', 'settings.js'],
        [host],
      );
    await start();
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values,
      async loggedIn(page) {
        await page.goto(`http://${host}/`);
        const either = '#red-ui-workspace:visible, #node-dialog-login:visible';
        await page.locator(either).first().waitFor({ timeout: 60_000 });
        return (await page.locator('#node-dialog-login').count()) === 0;
      },
      async endSessions() {
        await folder.stop();
        folder.remove('.sessions.json');
        await start();
      },
      close: folder.close,
    };
  },
};

/** A package registry: the login is a dialog of React that a button opens. */
export const verdaccio: App = {
  name: 'verdaccio',
  language: 'en',
  about: 'single page of React, a button opens the login dialog, token in local storage',
  npm: { verdaccio: '6.7.4' },
  npmOverrides: { 'node-fetch': '2.7.0' }, // it asks for a tag, not for a version
  async start() {
    const host = `127.0.0.1:${await freePort()}`;
    const values = { username: 'packer', password: 'semver-or-bust' };
    const folder = appFolder('verdaccio', {
      'config.yaml': `storage: ./storage
auth:
  htpasswd:
    file: ./htpasswd
uplinks: {}
packages:
  '**': { access: $all, publish: $authenticated }
web: { title: Packages, login: true }
security: { web: { sign: { expiresIn: 7d } } }
log: { type: stdout, format: pretty, level: warn }
`,
      htpasswd: `${values.username}:{SHA}${createHash('sha1').update(values.password).digest('base64')}\n`,
      'storage/keep': '',
    });
    const program = join(npmHome(verdaccio), 'node_modules/verdaccio/bin/verdaccio');
    await folder.start(process.execPath, [program, '--config', 'config.yaml', '--listen', `http://${host}`], [host]);
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values,
      async loggedIn(page) {
        await page.goto(`http://${host}/`);
        const inside = page.getByTestId('logInDialogIcon');
        await inside.or(page.getByTestId('header--button-login')).first().waitFor({ timeout: 60_000 });
        return (await inside.count()) > 0;
      },
      // Its pages accept an old token until it expires, even if the server has revoked it, so no session is ended here.
      close: folder.close,
    };
  },
};

/** A dashboard with users of its own: password first, then a TOTP code where the user has a secret. */
export const parseDashboard: App = {
  name: 'parse-dashboard',
  language: 'en',
  about: 'script-rendered login form, TOTP asked for after the password, signed session cookie',
  npm: { 'parse-dashboard': '9.2.0' },
  async start() {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const values = { username: 'steward', password: 'Objects+Classes' };
    const totp = 'GAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQ';
    const folder = appFolder('parse-dashboard', {
      'config.json': JSON.stringify({
        apps: [{ serverURL: `http://${host}/parse`, appId: 'app', masterKey: 'key', appName: 'Shop' }],
        users: [{ user: values.username, pass: values.password, mfa: totp }],
      }),
    });
    const program = join(npmHome(parseDashboard), 'node_modules/parse-dashboard/bin/parse-dashboard');
    let generation = 0;
    const start = () =>
      folder.start(
        process.execPath,
        [program, '--config', 'config.json', '--host', '127.0.0.1', '--port', String(port), '--allowInsecureHTTP', '1'],
        [host],
        { PARSE_DASHBOARD_COOKIE_SESSION_SECRET: `secret ${generation++} of this site` },
      );
    await start();
    return {
      loginUrl: `http://${host}/`,
      hosts: [host],
      values,
      totp,
      async loggedIn(page) {
        await page.goto(`http://${host}/apps`);
        return !page.url().includes('/login');
      },
      async endSessions() {
        await folder.stop();
        await start();
      },
      close: folder.close,
    };
  },
};

/** A site that has no password of its own: a real OpenID provider on another host knows the user, and asks for consent. */
export const oidc: App = {
  name: 'oidc-provider',
  language: 'en',
  about: 'a relying party with one button; login and consent are at an OpenID provider on another host',
  npm: { 'oidc-provider': '9.13.3' },
  async start() {
    const [site, provider] = [`127.0.0.1:${await freePort()}`, `127.0.0.2:${await freePort()}`];
    const values = { username: 'holder@id.example', password: 'Claims&Scopes' };
    const folder = appFolder('oidc', {});
    const program = fileURLToPath(new URL('oidc.mjs', import.meta.url));
    const start = () =>
      folder.start(process.execPath, [program], [site, provider], {
        OIDC: join(npmHome(oidc), 'node_modules/oidc-provider/lib/index.js'),
        SITE: site,
        PROVIDER: provider,
        ACCOUNT: JSON.stringify(values),
      });
    await start();
    return {
      loginUrl: `http://${site}/`,
      hosts: [site, provider],
      allowedDomains: ['http://127.0.0.2'],
      values,
      choice: /Example ID/,
      async loggedIn(page) {
        await page.goto(`http://${site}/`);
        return (await page.locator('#me').count()) > 0;
      },
      // Both the site and the provider keep their sessions in memory.
      async endSessions() {
        await folder.stop();
        await start();
      },
      close: folder.close,
    };
  },
};
