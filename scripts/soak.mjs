import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('test/soak.ts');
