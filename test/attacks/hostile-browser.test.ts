import { expect, test } from 'vitest';
import { run } from '../support/process.ts';

/**
 * The browser is the tenant's: a page or a process that takes it over speaks on its pipe. So do a display and a guest. The
 * test runs in its own process, to detect every unhandled rejection. `npm run fuzz` sends a million messages.
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
