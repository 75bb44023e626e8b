import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The package's folder: everything here is named from it, whatever folder a script was called in. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** A program of our dependencies, by its own file: `npx` costs half a second to find the same. */
const programs = {
  tsc: 'node_modules/typescript/bin/tsc',
  vitest: 'node_modules/vitest/vitest.mjs',
  prettier: 'node_modules/prettier/bin/prettier.cjs',
  oxlint: 'node_modules/oxlint/bin/oxlint',
};

/** Runs a program on our terminal, as if it had been called instead of us. Resolves to its exit code. */
export function show(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = start(program, args, { stdio: 'inherit', ...options });
    // Ctrl-C reaches the child by itself, from the terminal; we only have to outlive it to pass on its exit code.
    const forward = (signal) => signal !== 'SIGINT' && child.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward).on('SIGHUP', forward);
    child.on('error', reject).on('exit', (code, signal) => {
      process.off('SIGINT', forward).off('SIGTERM', forward).off('SIGHUP', forward);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs a program and keeps what it says. A program that cannot be started counts as one that failed. */
export function listen(program, args, options = {}) {
  return new Promise((resolve) => {
    const child = start(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: output.trim() }));
  });
}

function start(program, args, options) {
  const [file, ...words] = commandLine(program, args);
  return spawn(file, words, { cwd: root, ...options });
}

/** What runs a program, as words; those of our dependencies are named from the package's folder. */
export function commandLine(program, args) {
  return program in programs ? [process.execPath, programs[program], ...args] : [program, ...args];
}
