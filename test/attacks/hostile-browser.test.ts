import { expect, test } from 'vitest';
import { run } from '../support/process.ts';

/**
 * The browser is the tenant's: a page or a process that takes it over speaks on its pipe. So do a display and a guest. In a
 * process of its own, since an unhandled rejection anywhere is what it looks for. `npm run fuzz` goes on for a million messages.
 */
test('a browser, a display and a guest that lie end nothing but their session', { timeout: 300_000 }, async () => {
  const options = JSON.stringify({ seed: 20_261_115, messages: 60_000 });
  const { code, stdout, stderr } = await run([
    '--expose-gc',
    'test/support/run-ts.mjs',
    'test/support/hostile/fuzz.ts',
    options,
  ]);
  expect(`${stdout}${stderr}`).not.toContain('FAULT');
  expect(code, stderr).toBe(0);
});
