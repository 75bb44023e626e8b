import type { Isolation } from '../chromium/launch.ts';

/** What `/ready` says of browsers: whether one can be launched, and what this machine withholds from them. */
export function sessionProbes({ engines, sandboxed, reasons }: Isolation) {
  const one = engines.full ?? engines.headlessShell;
  return [
    {
      name: 'browser',
      required: true,
      check: async () =>
        one ? undefined : 'There is no Chromium on this machine. `npm run doctor` says what to install.',
    },
    {
      name: 'isolation',
      required: false,
      check: async () => (sandboxed && reasons.length === 0 ? undefined : reasons.join(' ')),
    },
  ];
}
