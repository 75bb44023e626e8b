import type { Isolation } from '../chromium/browser/launch.ts';

/** What `/ready` reports of browsers: whether one can be launched, which isolation this machine lacks, and which parts, as the doctor does. */
export function sessionProbes(
  isolation: Isolation,
  allowUnsandboxed: boolean,
  trial: () => Promise<string | undefined>,
  missingParts: () => string[],
) {
  const one = isolation.engines.full ?? isolation.engines.headlessShell;
  return [
    {
      name: 'browser',
      required: true,
      async check() {
        if (!one)
          return 'There is no Chromium on this machine. `npm run doctor` says what to install. Then start the service again.';
        if (isolation.refusal !== undefined && !allowUnsandboxed) return undefined; // `isolation` reports the reason
        return trial();
      },
    },
    {
      name: 'isolation',
      /** Without a sandbox no browser is started, unless the operator allows it. */
      get required() {
        return !isolation.sandboxed && !allowUnsandboxed;
      },
      check: async () => isolation.reasons.join(' ') || undefined,
    },
    { name: 'parts', required: false, check: async () => missingParts().join(' ') || undefined },
  ];
}
