import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The package's folder: all paths here are relative to it, independent of the current folder. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** Programs of the dependencies, by their files: `npx` takes half a second to find the same. */
const programs = {
  tsc: 'node_modules/typescript/bin/tsc',
  vitest: 'node_modules/vitest/vitest.mjs',
  prettier: 'node_modules/prettier/bin/prettier.cjs',
  oxlint: 'node_modules/oxlint/bin/oxlint',
};

/** Runs a program on this terminal. Resolves to its exit code. */
export function show(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = start(program, args, { stdio: 'inherit', ...options });
    // The terminal sends Ctrl-C to the child, too; this process only has to outlive it to pass on its exit code.
    const forward = (signal) => signal !== 'SIGINT' && child.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward).on('SIGHUP', forward);
    child.on('error', reject).on('exit', (code, signal) => {
      process.off('SIGINT', forward).off('SIGTERM', forward).off('SIGHUP', forward);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs a program and returns its output. A program that cannot be started counts as failed. */
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

/** The command line of a program; programs of the dependencies are named from the package's folder. */
export function commandLine(program, args) {
  return program in programs ? [process.execPath, programs[program], ...args] : [program, ...args];
}
