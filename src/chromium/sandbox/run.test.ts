import { expect, test } from 'vitest';
import { run } from './run.ts';

test('a program that fails says why, with the beginning of what it said', async () => {
  await expect(run('sh', ['-c', 'echo no >&2; exit 3'])).rejects.toThrow('sh ended with 3. no');
  await expect(run('true', [])).resolves.toBeUndefined();
  await expect(run('/there/is/none', [])).rejects.toThrow('ENOENT');
});

test('what a program says is not kept whole', async () => {
  let most = 0;
  const before = process.memoryUsage.rss();
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss() - before)), 5);
  const says = 'head -c 300000000 /dev/zero | tr "\\0" x >&2; exit 1';
  await expect(run('sh', ['-c', says])).rejects.toThrow(/^sh ended with 1\. x{1000}$/);
  clearInterval(timer);
  expect(most).toBeLessThan(150_000_000);
});
