import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The binaries themselves, never a distribution's wrapper script: the script adds its own flags and needs an environment. */
const chromiumPlaces = [
  '/usr/lib/chromium/chromium',
  '/usr/lib64/chromium-browser/chromium-browser',
  '/usr/lib/chromium-browser/chromium-browser',
  '/opt/google/chrome/chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const headlessShellPlaces = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib64/chromium-browser/headless_shell'];

/**
 * The system parts that Corral needs: the Debian package of each, how to find it, and the features that it enables. The service finds
 * its browsers with this list, and `/ready` reports missing parts from it, so that it agrees with `npm run doctor`.
 * An installation that cannot install the `optional` ones continues without them.
 */
export const parts = [
  {
    name: 'chromium',
    browser: true,
    everywhere: true,
    without: 'headful browsers, extensions, kiosk and policies',
    find: ({ chromium }) => file(...(chromium ? [chromium] : chromiumPlaces)),
    version: ['--version'],
  },
  {
    name: 'chromium-headless-shell',
    browser: true,
    without: 'headless browsers that start in a tenth of a second',
    find: ({ headlessShell }) => file(...(headlessShell ? [headlessShell] : headlessShellPlaces)),
    version: ['--version'],
  },
  {
    name: 'bubblewrap',
    sandbox: true,
    without: 'the sandbox around each session, and with it every browser (unless CORRAL_ALLOW_UNSANDBOXED=true)',
    find: () => installed('bwrap'),
    version: ['--version'],
  },
  {
    name: 'iproute2',
    sandbox: true,
    without: "the network of a session's sandbox",
    find: () => installed('ip'),
    version: ['-V'],
  },
  {
    name: 'tigervnc-standalone-server',
    without: 'headful sessions and their live view',
    find: () => installed('Xvnc'),
    version: ['-version'],
  },
  {
    name: 'openbox',
    optional: true,
    without: 'frames of popups in headful sessions, their own size, and pages in full screen',
    find: () => installed('openbox'),
    version: ['--version'],
  },
  {
    // The same source as chromium, so that apt-get installs the two in the same version.
    name: 'chromium-driver',
    optional: true,
    without: 'sessions for Selenium and other classic WebDriver clients',
    // Below /usr, which sessions see.
    find: () =>
      file(
        '/usr/bin/chromedriver',
        '/usr/lib/chromium/chromedriver',
        '/usr/lib64/chromium-browser/chromedriver',
        '/usr/local/bin/chromedriver',
      ),
    version: ['--version'],
  },
  {
    name: 'zstd',
    without: 'profiles',
    find: () => installed('zstd'),
    version: ['--version'],
  },
  {
    name: 'ffmpeg',
    without: 'replays',
    find: () => installed('ffmpeg'),
    version: ['-version'],
  },
  {
    name: 'fonts-liberation',
    without: 'text in the widths that pages made for Arial, Times and Courier expect',
    find: () =>
      font(
        /^LiberationSans-Regular\./,
        '/usr/share/fonts/truetype/liberation',
        '/usr/share/fonts/truetype/liberation2',
      ),
  },
  {
    name: 'fonts-noto-color-emoji',
    without: 'emoji, which become empty boxes',
    find: () => font(/^NotoColorEmoji\./, '/usr/share/fonts/truetype/noto'),
  },
  {
    name: 'fonts-noto-cjk',
    optional: true,
    without: 'Chinese, Japanese and Korean, which become empty boxes',
    find: () => font(/^NotoSansCJK-Regular\./, '/usr/share/fonts/opentype/noto'),
  },
  {
    name: 'fonts-noto-core',
    optional: true,
    without: 'Arabic, Hebrew, Devanagari, Thai, many other scripts and symbols, which become empty boxes',
    find: () => font(/^NotoSansDevanagari-Regular\./, '/usr/share/fonts/truetype/noto'),
  },
  {
    // Sessions see this cache read-only; without it each browser spends 0.3 s scanning fonts before its first page.
    name: 'fontconfig',
    without: 'a fast start: each browser takes 0.3 s longer',
    find: () =>
      ['/var/cache/fontconfig', '/usr/lib/fontconfig/cache'].find((folder) => filesIn(folder).some(isFontCache)),
    // The package makes the cache when it is installed; slimmed-down images keep the package and lose the cache.
    mend: ['fc-cache', '--system-only', '--really-force'],
  },
];

/**
 * Every part this machine should have, each with the path where it was found (or undefined). Without the `required` ones no browser runs:
 * one of the two browsers is enough, and what makes the sandbox is needed unless the operator wants none.
 */
export function findParts({ chromium, headlessShell, allowUnsandboxed } = settings()) {
  const wanted = process.platform === 'linux' ? parts : parts.filter((part) => part.everywhere);
  const found = wanted.map((part) => ({ ...part, path: part.find({ chromium, headlessShell }) }));
  const anyBrowser = found.some((part) => part.browser && part.path);
  return found.map((part) => ({
    ...part,
    required: part.browser ? !anyBrowser : part.sandbox ? !allowUnsandboxed : false,
  }));
}

const settings = () => ({
  chromium: process.env.CORRAL_CHROMIUM,
  headlessShell: process.env.CORRAL_HEADLESS_SHELL,
  allowUnsandboxed: process.env.CORRAL_ALLOW_UNSANDBOXED === 'true',
});

/** Debian and its derivatives, where apt-get knows the packages by these names. */
export function isDebian() {
  try {
    return (
      /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8')) && Boolean(command('apt-get'))
    );
  } catch {
    return false;
  }
}

export function isRoot() {
  return process.getuid?.() === 0;
}

const systemFolders = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Where a command is. An ordinary user's PATH lacks the sbin folders, where Debian keeps `ip`. */
export function command(...names) {
  return inFolders([...(process.env.PATH ?? '').split(':').filter(Boolean), ...systemFolders], names);
}

/** Where a program of the system is. A folder of one user's PATH is not seen by the service and its sessions. */
function installed(...names) {
  return inFolders(systemFolders, names);
}

function inFolders(folders, names) {
  return file(...names.flatMap((name) => folders.map((folder) => join(folder, name))));
}

function file(...paths) {
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      // A snap has its own confinement, which does not work inside a session's sandbox.
      return !/^\/(usr\/bin\/snap$|snap\/)/.test(realpathSync(path));
    } catch {
      return false;
    }
  });
}

function font(pattern, ...usualFolders) {
  for (const folder of [
    ...usualFolders,
    '/usr/share/fonts',
    '/usr/local/share/fonts',
    join(homedir(), '.local/share/fonts'),
  ]) {
    const found = filesIn(folder, { recursive: !usualFolders.includes(folder) }).find((path) =>
      pattern.test(path.split('/').pop()),
    );
    if (found) return join(folder, found);
  }
  return undefined;
}

function isFontCache(name) {
  return /\.cache-\d+$/.test(name);
}

function filesIn(folder, options) {
  return existsSync(folder) ? readdirSync(folder, options) : [];
}
