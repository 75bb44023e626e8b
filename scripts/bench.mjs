import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('bench/main.ts');
