import type { Db } from '../store/db.ts';
import { checkClaims } from './claim-store.ts';
import type { LoginInputs } from './inputs.ts';
import { runStore } from './run-store.ts';

/** The reason why logins of an exited process have failed. */
export const reasons = {
  restarted: 'The service was restarted during the login. Start it again.',
  lost: 'The node that ran the login was lost. Start it again.',
} as const;

/** Ends what a node left under way, and lets its checks be taken over. Answers with the number of logins that it ended. */
export async function abandon(
  inputs: Pick<LoginInputs, 'discard'>,
  nodeId: string,
  why: (typeof reasons)[keyof typeof reasons],
  within: Db,
): Promise<number> {
  const runs = await runStore(within).endAllOf(nodeId, why);
  const ids = runs.map(({ id }) => id);
  await inputs.discard(ids, within);
  await checkClaims(within).releaseClaimsOf(nodeId);
  return runs.length;
}
