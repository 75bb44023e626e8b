import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aptInstall } from '../../scripts/apt.mjs';
import { command, isDebian, isRoot } from '../../scripts/parts.mjs';
import { corralBin, corralCommand } from '../support/corral-command.ts';

/** What the command line does by itself, without a service. */
let home: string;
const environment = (): Record<string, string> => ({
  PATH: `${home}/bin:${process.env['PATH']}`,
  HOME: home,
  TERM: 'xterm',
  LC_ALL: 'C.UTF-8',
});
const { corral, json, text } = corralCommand(() => ({ cwd: home, env: environment() }));

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'corral-alone-'));
  await mkdir(join(home, 'bin'));
  await writeFile(join(home, 'bin/corral'), `#!/bin/sh\nexec ${process.execPath} ${corralBin} "$@"\n`);
  await chmod(join(home, 'bin/corral'), 0o755);
  await mkdir(join(home, '.config/corral'), { recursive: true });
  const work = { url: 'https://corral.example.com', key: 'sk_planted_key' };
  await writeFile(join(home, '.config/corral/contexts.json'), JSON.stringify({ current: 'work', contexts: { work } }));
});
afterAll(() => rm(home, { recursive: true, force: true }));

describe('completion', () => {
  beforeAll(async () => {
    const missing = ['tmux', 'zsh', 'fish'].filter((name) => !command(name));
    if (missing.length > 0 && isRoot() && isDebian()) await aptInstall(missing);
  }, 600_000);

  const cases = [
    ['corral brow', 'corral browsers'],
    ['corral browsers cr', 'corral browsers create'],
    ['corral browsers create --headl', 'corral browsers create --headless'],
    ['corral browsers fs wa', 'corral browsers fs watch'],
    ['corral browsers list --context wo', 'corral browsers list --context work'],
    ['corral cp note', 'corral cp note-of-mine.txt'],
  ] as const;

  /** A person at a terminal: the typed text, and the line after the tab key. */
  test.each([
    ['bash', 'bash --norc --noprofile -i'],
    ['zsh', 'zsh -f -i'],
  ])('of %s completes nouns, verbs, options, contexts and files', async (shell, program) => {
    const file = join(home, `completion.${shell}`);
    await writeFile(file, await text('completion', shell));
    await writeFile(join(home, 'note-of-mine.txt'), '');
    const tmux = (...args: string[]) => run('tmux', ['-S', join(home, `tmux-${shell}`), '-f', '/dev/null', ...args]);
    await tmux('new-session', '-d', '-x', '100', '-y', '30', '-c', home, program);
    try {
      const screen = () => tmux('capture-pane', '-p');
      const poll = { timeout: 60_000, interval: 200 };
      await tmux('send-keys', `PS1='> '; . ${file}; clear; echo rea""dy`, 'Enter');
      await expect.poll(screen, poll).toMatch(/^ready\n> *$/m);
      for (const [typed, whole] of cases) {
        await tmux('send-keys', '-l', typed);
        await expect.poll(screen, poll).toContain(`> ${typed}`);
        await tmux('send-keys', 'Tab');
        await expect.poll(screen, poll).toMatch(new RegExp(`^> ${whole} *$`, 'm'));
        await tmux('send-keys', 'C-u');
        await expect.poll(screen, poll).toMatch(/^> *$/m);
      }
    } finally {
      await tmux('kill-server');
    }
  });

  test('of fish does so too', async () => {
    await writeFile(join(home, 'completion.fish'), await text('completion', 'fish'));
    await writeFile(join(home, 'note-of-mine.txt'), '');
    const lines = cases.map(([typed]) => `complete -C '${typed}'`);
    const said = await run('fish', ['--no-config', '-c', [`source ${home}/completion.fish`, ...lines].join('; ')]);
    // Each line begins with a word; what it is for may follow after a tab.
    const words = said.split('\n').map((line) => line.split('\t')[0]);
    for (const [, whole] of cases) expect(words).toContain(whole.split(' ').at(-1));
  });

  test('offers matching words, in JSON as well', async () => {
    expect(await json('completion', 'words', '--', 'browsers', 'cr')).toEqual(['create']);
    expect(await json('completion', 'words', '--', 'pools', 're')).toEqual(['release']);
    expect(await json('completion', 'words', '--', 'nothing', 'such', '')).not.toContain('such');
  });

  async function run(program: string, args: string[]): Promise<string> {
    const child = spawn(program, args, { cwd: home, env: environment() });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (out += piece));
    await new Promise((resolve, reject) => child.on('close', resolve).on('error', reject));
    return out;
  }
});

test('a service that is not there is named, and a mistake is taught', async () => {
  const env = { ...environment(), CORRAL_URL: 'http://127.0.0.1:9', CORRAL_API_KEY: 'sk_planted_key' };
  expect(await corral(['browsers', 'list'], { env })).toMatchObject({
    code: 5,
    stdout: '',
    stderr: expect.stringContaining('http://127.0.0.1:9'),
  });
  expect(await corral(['brwsers'])).toMatchObject({ code: 2, stderr: expect.stringContaining("'browsers'") });
  expect(await corral(['browsers', 'create', '--hedless'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--headless'"),
  });
  expect((await corral(['browsers', 'create', '--help'])).stdout).toMatch(/Examples:\n {2}corral .*\n {2}corral /);
});

describe('mcp install', () => {
  const files = {
    claude: ['.claude.json', 'mcpServers'],
    cursor: ['.cursor/mcp.json', 'mcpServers'],
    windsurf: ['.codeium/windsurf/mcp_config.json', 'mcpServers'],
    gemini: ['.gemini/settings.json', 'mcpServers'],
    vscode: ['.vscode/mcp.json', 'servers'],
  } as const;
  const expected = { command: process.execPath, args: [corralBin, 'mcp', '--context', 'work'] };

  test.each(Object.entries(files))(
    'for %s shows what it writes, and writes it once it may',
    async (name, [path, key]) => {
      const file = join(home, path);
      const shown = await corral(['mcp', 'install', '--for', name]);
      expect(shown).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('Nothing was written') });
      expect(shown.stderr).toContain(file);
      expect(shown.stderr).toContain('"--context"');
      await expect(stat(file)).rejects.toThrow('ENOENT');

      expect(await json('mcp', 'install', '--for', name, '--yes')).toEqual({ file, server: expected });
      const written = await readFile(file, 'utf8');
      expect(JSON.parse(written)).toEqual({ [key]: { corral: expected } });
      expect(written).not.toContain('sk_planted_key');
      expect((await stat(file)).mode & 0o777).toBe(0o600);
    },
  );

  test('keeps other settings, the mode of the file, and a link', async () => {
    const real = join(home, 'dotfiles.json');
    const file = join(home, files.cursor[0]);
    const others = {
      theme: 'dark',
      mcpServers: { other: { command: 'other', env: { TOKEN: 'x' } }, corral: { old: true } },
    };
    await writeFile(real, JSON.stringify(others), { mode: 0o640 });
    await chmod(real, 0o640);
    await rm(file, { force: true });
    await mkdir(dirname(file), { recursive: true });
    await symlink(real, file);
    expect(await corral(['mcp', 'install', '--for', 'cursor', '-y'])).toMatchObject({ code: 0 });
    expect(JSON.parse(await readFile(real, 'utf8'))).toEqual({
      theme: 'dark',
      mcpServers: { other: others.mcpServers.other, corral: expected },
    });
    expect((await stat(real)).mode & 0o777).toBe(0o640);
  });

  test('refuses a configuration that it would break, a client it does not know, and a service the client would not find', async () => {
    const file = join(home, files.gemini[0]);
    await mkdir(dirname(file), { recursive: true });
    for (const [broken, words] of [
      ['{ "mcpServers": {}, // mine\n}', 'not plain JSON'],
      ['[]', 'no object'],
      ['null', 'no object'],
      ['{ "mcpServers": [] }', "'mcpServers' in"],
    ] as const) {
      await writeFile(file, broken);
      const refused = await corral(['mcp', 'install', '--for', 'gemini', '--yes']);
      expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
      expect(await readFile(file, 'utf8')).toBe(broken);
    }
    expect(await corral(['mcp', 'install', '--for', 'toString'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('claude, cursor, windsurf, gemini or vscode'),
    });
    const env = { ...environment(), CORRAL_URL: 'http://127.0.0.1:9', CORRAL_API_KEY: 'sk_planted_key' };
    expect(await corral(['mcp', 'install', '--for', 'claude', '--yes'], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('corral login'),
    });
  });
});
