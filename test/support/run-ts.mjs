// Runs a TypeScript module's default export in a process of its own, for tests that kill that process.
//   node test/support/run-ts.mjs <module.ts> <JSON argument>
import { resolve } from 'node:path';
import { createRunnableDevEnvironment, resolveConfig } from 'vite';

const [, , path, argument = 'null'] = process.argv;
const name = 'child';
const config = await resolveConfig(
  {
    configFile: false,
    envDir: false,
    logLevel: 'silent',
    environments: {
      [name]: {
        consumer: 'server',
        dev: { moduleRunnerTransform: true },
        resolve: { external: true, mainFields: [], conditions: ['node'] },
      },
    },
  },
  'serve',
);
// Vite's runnerImport does the same, but closes the environment when the module is loaded: a later import() of it would never resolve.
const environment = createRunnableDevEnvironment(name, config, {
  runnerOptions: { hmr: { logger: false } },
  hot: false,
});
await environment.init();
const module = await environment.runner.import(resolve(path));
await module.default(JSON.parse(argument));
await environment.close();
