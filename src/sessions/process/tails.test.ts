import { expect, test } from 'vitest';
import type { Guest } from '../../chromium/guest/guest.ts';
import { forgetProcesses, loseTail, processLines, rememberProcess, takeTail } from './tails.ts';

/** A guest with processes that have written this. */
function guestWith(written: Record<string, { text: string; exit?: number } | Error>) {
  const asked: string[] = [];
  const call = async (_: 'tail', { process_id: id }: { process_id: string }) => {
    asked.push(id);
    const found = written[id]!;
    if (found instanceof Error) throw found;
    return { tail_b64: Buffer.from(found.text).toString('base64'), exit_code: found.exit ?? null };
  };
  return { guest: { call } as unknown as Guest, asked };
}

test('returns the last lines of processes, by program and pid, and asks only for those that still run', async () => {
  const { guest, asked } = guestWith({ a: { text: 'one\ntwo\n', exit: 3 }, b: { text: 'ready\r\n' } });
  rememberProcess(guest, 'a', { command: '/usr/bin/make', pid: 7 });
  rememberProcess(guest, 'b', { command: 'server', pid: 8 });
  await takeTail(guest, 'a');
  expect(await processLines(guest)).toEqual([
    'make[7]: one',
    'make[7]: two',
    'make[7]: exited with code 3',
    'server[8]: ready',
  ]);
  expect(asked).toEqual(['a', 'b']);
  forgetProcesses(guest); // another holder
  expect(await processLines(guest)).toEqual([]);
});

test('a lost guest is not asked, and a failing guest costs only its lines', async () => {
  const { guest, asked } = guestWith({ b: new Error('gone') });
  rememberProcess(guest, 'a', { command: 'a', pid: 1 });
  rememberProcess(guest, 'b', { command: 'b', pid: 2 });
  loseTail(guest, 'a');
  expect(await processLines(guest)).toEqual(['a[1]: was killed']);
  expect(asked).toEqual(['b']);
});

test('remembers the newest processes only, and a line that may be cut is left out', async () => {
  const { guest } = guestWith({ p9: { text: `cut\n${'x'.repeat(4092)}` } });
  for (let n = 1; n <= 9; n++) {
    rememberProcess(guest, `p${n}`, { command: 'p', pid: n });
    if (n < 9) loseTail(guest, `p${n}`);
  }
  const lines = await processLines(guest);
  expect(lines).toHaveLength(8);
  expect(lines[0]).toBe('p[2]: was killed');
  expect(lines.at(-1)).toBe(`p[9]: ${'x'.repeat(4092)}`);
});
