import type { Operation } from '../src/lib/operation.ts';
export function operationsOf(document: object): Record<string, Operation>;
