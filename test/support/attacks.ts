import { detectIsolation, type Isolation } from '../../src/chromium/launch.ts';

/** Attacks prove nothing on a machine without a sandbox, so they fail there instead of being passed over. */
export async function requireSandbox(): Promise<Isolation> {
  const isolation = await detectIsolation();
  if (!isolation.sandboxed) throw new Error(`The attack suite needs a sandbox. ${isolation.reasons.join(' ')}`);
  return isolation;
}

export const asRoot = process.getuid?.() === 0;
