import { detectIsolation, launch, type LaunchOptions } from '../../src/chromium/browser/launch.ts';

/** Launches a browser, says so on stdout, and waits to be killed. */
export default async function launchAndWait({ frozen, ...options }: LaunchOptions & { frozen?: boolean }) {
  // Values that cannot be sent between processes are detected again.
  const { owners } = await detectIsolation();
  const isolation = options.isolation && { ...options.isolation, owners };
  const browser = await launch({ ...options, ...(isolation && { isolation }) }, AbortSignal.timeout(60_000));
  if (frozen === true) await browser.freeze();
  console.log(JSON.stringify({ init: browser.init }));
  setInterval(() => {}, 1000);
}
