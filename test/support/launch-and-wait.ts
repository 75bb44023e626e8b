import { launch, type LaunchOptions } from '../../src/chromium/launch.ts';

/** Launches a browser, says so on stdout, and waits to be killed. */
export default async function launchAndWait({ frozen, ...options }: LaunchOptions & { frozen?: boolean }) {
  const browser = await launch(options, AbortSignal.timeout(30_000));
  if (frozen === true) await browser.freeze();
  console.log(JSON.stringify({ init: browser.init }));
  setInterval(() => {}, 1000);
}
