import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';

export const corralBin = join(import.meta.dirname, '../../bin/corral.cjs');

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Place {
  cwd: string;
  env: Record<string, string>;
}

/** The command line, run as a person or a program runs it. `used` has every line that was run, `asJson` those that were asked for JSON. */
export function corralCommand(place: () => Place) {
  const used = new Set<string>();
  const asJson = new Set<string>();

  function corral(args: string[], { input = '', env = place().env } = {}): Promise<Ran> {
    const asked = args.indexOf('-o') !== -1 && args[args.indexOf('-o') + 1] === 'json';
    const line = args
      .slice(args[0] === '-o' ? 2 : 0)
      .filter((word) => !word.startsWith('-'))
      .join(' ');
    used.add(line);
    if (asked) asJson.add(line);
    return new Promise((resolve, reject) => {
      const ran: Ran = { code: null, stdout: '', stderr: '' };
      const child = spawn(process.execPath, [corralBin, ...args], { cwd: place().cwd, env });
      // Named before the test's own time is over, which would say nothing of the command.
      const late = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new Error(`corral ${args.join(' ')} has not ended. It printed: ${ran.stdout}${ran.stderr}`));
      }, 200_000);
      child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
      child.stdin.on('error', () => {}).end(input);
      child.on('error', reject).on('close', (code) => {
        clearTimeout(late);
        if (asked && !isJson(ran.stdout)) reject(new Error(`corral ${args.join(' ')} printed no JSON: ${ran.stdout}`));
        else resolve({ ...ran, code });
      });
    });
  }

  return {
    used,
    asJson,
    corral,

    /** What a command prints for people. */
    async text(...args: string[]): Promise<string> {
      const ran = await corral(args);
      expect(ran, ran.stderr).toMatchObject({ code: 0 });
      expect(ran.stdout).not.toContain('\x1b[');
      return ran.stdout;
    },

    /** What it prints for programs: one JSON, and nothing else. */
    // oxlint-disable-next-line typescript/no-explicit-any -- each test judges what it gets
    async json(...args: string[]): Promise<any> {
      const ran = await corral(['-o', 'json', ...args]);
      expect(ran, ran.stderr).toMatchObject({ code: 0 });
      return JSON.parse(ran.stdout);
    },

    /** A refusal: its code on stderr, with the request's id, and the exit code. */
    async refused(code: string, exit: number, ...args: string[]): Promise<void> {
      const ran = await corral(args);
      expect(ran).toMatchObject({ code: exit, stdout: '', stderr: expect.stringContaining(`code: ${code}`) });
      expect(ran.stderr).toMatch(/request: req_\w+/);
    },
  };
}

/** Three processes at once: more of them only wait for each other. The results are in order. */
// oxlint-disable-next-line typescript/no-explicit-any -- each test judges what it gets
export async function fewAtOnce(tasks: readonly (() => Promise<any>)[]): Promise<any[]> {
  const results: unknown[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < tasks.length; at = next++) results[at] = await tasks[at]!();
  };
  await Promise.all([work(), work(), work()]);
  return results;
}

/** One JSON, or a line of JSON for each event; nothing where the service refused. */
function isJson(text: string): boolean {
  const whole = (piece: string) => {
    try {
      JSON.parse(piece);
      return true;
    } catch {
      return false;
    }
  };
  return text === '' || whole(text) || text.trimEnd().split('\n').every(whole);
}
