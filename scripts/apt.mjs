import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from './run.mjs';
import { duration, say, Stop } from './say.mjs';

/** How long to wait for another apt (in its first minutes a machine often has one running). */
const lockSeconds = 300;

/** Installs packages and shows the progress. Resolves to the names that apt does not know. */
export async function aptInstall(names) {
  const started = Date.now();
  say(`\nInstalling ${names.length === 1 ? 'it' : 'them'} with apt-get.`);
  const update = await apt(['update']);
  // Offline, or one dead repository: the present package lists may still be enough, and if not, install reports it better.
  if (update.code !== 0) say('  apt-get update failed; continuing with the existing package lists.');

  const known = await withCandidate(names);
  if (known.length > 0) {
    const install = await apt(['install', '--yes', '--no-install-recommends', ...known]);
    if (install.code !== 0) throw new Stop(`${install.output}\n\napt-get install failed; its reasons are above.`);
    say(`  Installed ${known.join(', ')} in ${duration(Date.now() - started)}.`);
  }
  return names.filter((name) => !known.includes(name));
}

async function withCandidate(names) {
  const { output } = await listen('apt-cache', ['policy', ...names], { env: plainEnglish });
  return names.filter((name) => new RegExp(`^${name}:\\n.*\\n +Candidate: (?!\\(none\\))`, 'm').test(output));
}

const plainEnglish = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };

async function apt(args) {
  const deadline = Date.now() + lockSeconds * 1000;
  for (;;) {
    const result = await aptOnce(args);
    // DPkg::Lock::Timeout covers the lock on packages, but not the one on package lists.
    if (result.code === 0 || !/Could not get lock/.test(result.output) || Date.now() > deadline) return result;
    await sleep(2000);
  }
}

function aptOnce(args) {
  return new Promise((resolve) => {
    const child = spawn(
      'apt-get',
      ['-q', '-o', 'APT::Status-Fd=3', '-o', `DPkg::Lock::Timeout=${lockSeconds}`, '-o', 'Dpkg::Use-Pty=0', ...args],
      { env: plainEnglish, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
    );
    const line = progressLine();
    let output = '';
    const keep = (text) => {
      output = (output + text + '\n').slice(-10_000);
      if (/^(Waiting for cache lock|E: Could not get lock)/.test(text)) line.show('waiting for another apt to finish');
    };
    createInterface({ input: child.stdout }).on('line', keep);
    createInterface({ input: child.stderr }).on('line', keep);
    // pmstatus:ffmpeg:57.14:Unpacking ffmpeg (amd64), and dlstatus:3:12.5:Retrieving file 3 of 40 (17s remaining)
    createInterface({ input: child.stdio[3] }).on('line', (status) => {
      const [kind, , percent, ...words] = status.split(':');
      if (kind === 'pmstatus' || kind === 'dlstatus') line.show(words.join(':'), Number(percent), kind);
    });
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    child.on('close', (code) => {
      line.end();
      resolve({ code: code ?? 1, output: output.trim() });
    });
  });
}

/** On a terminal one line that is rewritten; in a log a line for each fifth of the way, which is enough to see progress. */
function progressLine() {
  const terminal = process.stderr.isTTY;
  let last;
  return {
    show(words, percent, kind) {
      const text = percent === undefined ? `  ${words}` : `  ${String(Math.floor(percent)).padStart(3)} %  ${words}`;
      const step = percent === undefined ? words : `${kind} ${Math.floor(percent / 20)}`;
      if (terminal) process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
      else if (step !== last) say(text);
      last = step;
    },
    end() {
      if (terminal && last !== undefined) process.stderr.write('\r\x1b[K');
    },
  };
}
