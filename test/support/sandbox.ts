import { detectIsolation, type Isolation } from '../../src/chromium/browser/launch.ts';

/** Attacks prove nothing on a machine without a sandbox, so they fail there instead of being passed over. */
export async function requireSandbox(): Promise<Isolation> {
  const isolation = await detectIsolation();
  if (!isolation.sandboxed) throw new Error(`These tests need a sandbox. ${isolation.reasons.join(' ')}`);
  return isolation;
}

/** What this machine lets tests do. Where CI is set, a missing sandbox fails the file: its tests must not be passed over there. */
export function isolationHere(): Promise<Isolation> {
  return process.env['CI'] ? requireSandbox() : detectIsolation();
}

export const asRoot = process.getuid?.() === 0;

/**
 * The same way into a session, but past the guest's filter and user namespace, in which the session's other processes cannot be looked
 * into: for tests that look for what those processes hold.
 */
export function unfiltered({ file, args }: { file: string; args: string[] }): { file: string; args: string[] } {
  const from = args.indexOf('bwrap');
  const to = args.indexOf('env', from);
  return from === -1 ? { file, args } : { file, args: [...args.slice(0, from), ...args.slice(to)] };
}
