// Runs a TypeScript module's default export in a process of its own, for tests that kill that process.
//   node test/support/run-ts.mjs <module.ts> <JSON argument>
import { resolve } from 'node:path';
import { runnerImport } from 'vite';

const [, , path, argument = 'null'] = process.argv;
const { module } = await runnerImport(resolve(path), { configFile: false, logLevel: 'silent' });
await module.default(JSON.parse(argument));
