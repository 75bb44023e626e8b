/**
 * `node --import ./scripts/typescript.mjs some.ts` runs TypeScript on Node 20, which does not support it. On newer versions,
 * which can, this does nothing. Modules stay real modules, at real paths: a benchmark measures the service's code, not a
 * wrapper around it.
 */
import { register } from 'node:module';

if (!process.features.typescript) register('./typescript-hooks.mjs', import.meta.url);
