/**
 * The process in which `corral browsers run` runs a script. A script that exports a function gets a page, its context and browser, and the
 * session. A script without one can use CORRAL_CDP_URL.
 */
import { register } from 'node:module';
import { pathToFileURL } from 'node:url';

type Script = (given: object) => unknown;

process.on('disconnect', () => process.exit(1)); // the command was killed
process.channel?.unref();

const [, , file, ...words] = process.argv as [string, string, string, ...string[]];
process.argv = [process.argv[0]!, file, ...words];
register('./typescript-hooks.js', import.meta.url);
const loaded = (await import(pathToFileURL(file).href)) as { default?: Script | { default?: Script } };
const exported = typeof loaded.default === 'object' ? loaded.default.default : loaded.default;
if (typeof exported === 'function') {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.connectOverCDP(process.env['CORRAL_CDP_URL']!);
  const context = browser.contexts()[0] ?? (await browser.newContext());
  const page = context.pages()[0] ?? (await context.newPage());
  const session: unknown = JSON.parse(process.env['CORRAL_SESSION']!);
  const result = await exported({ page, context, browser, session });
  if (result !== undefined) process.stdout.write(`${typeof result === 'string' ? result : JSON.stringify(result)}\n`);
  await browser.close();
}
process.removeAllListeners('disconnect').disconnect?.();
