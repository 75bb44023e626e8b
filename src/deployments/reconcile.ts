import type { Db } from '../store/db.ts';
import { invocationStore } from './invocation-store.ts';

/** Nodes that run invocations or build deployments, according to their rows. */
export const nodesWithRuns = (within: Db): Promise<string[]> => invocationStore(within).nodesInUse();
