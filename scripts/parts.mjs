import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * The system parts that Corral needs: the Debian package of each, how to find it, and what is switched off without it.
 * Without the `required` parts, no browser runs as it should. What cannot install the `optional` ones goes on without them.
 */
export const parts = [
  {
    name: 'chromium',
    required: true,
    everywhere: true,
    without: 'headful browsers, extensions, kiosk and policies',
    // The binary rather than Debian's /usr/bin/chromium, a shell script that adds its own flags.
    find: () =>
      file('/usr/lib/chromium/chromium') ??
      command('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome') ??
      file(
        '/Applications/Chromium.app/Contents/MacOS/Chromium',
        '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
      ),
    version: ['--version'],
  },
  {
    name: 'chromium-headless-shell',
    required: true,
    without: 'headless browsers that start in a tenth of a second',
    find: () =>
      file('/usr/lib/chromium/chromium-headless-shell', '/usr/lib64/chromium-browser/headless_shell') ??
      command('chromium-headless-shell', 'chrome-headless-shell', 'headless_shell'),
    version: ['--version'],
  },
  {
    name: 'bubblewrap',
    required: true,
    without: 'the sandbox around each session, and with it every browser (unless CORRAL_ALLOW_UNSANDBOXED=true)',
    find: () => command('bwrap'),
    version: ['--version'],
  },
  {
    name: 'iproute2',
    required: true,
    without: "the network of a session's sandbox",
    find: () => command('ip'),
    version: ['-V'],
  },
  {
    name: 'tigervnc-standalone-server',
    without: 'headful sessions and their live view',
    find: () => command('Xvnc'),
    version: ['-version'],
  },
  {
    name: 'openbox',
    optional: true,
    without: 'frames of popups in headful sessions, their own size, and pages in full screen',
    find: () => command('openbox'),
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
    find: () => command('zstd'),
    version: ['--version'],
  },
  {
    name: 'ffmpeg',
    without: 'replays',
    find: () => command('ffmpeg'),
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

/** Every part this machine should have, each with the path where it was found (or undefined). */
export function findParts() {
  const wanted = process.platform === 'linux' ? parts : parts.filter((part) => part.everywhere);
  return wanted.map((part) => ({ ...part, path: part.find() }));
}

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

/** Where a command is. An ordinary user's PATH lacks the sbin folders, where Debian keeps `ip`. */
export function command(...names) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];
  return file(...names.flatMap((name) => folders.filter(Boolean).map((folder) => join(folder, name))));
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
