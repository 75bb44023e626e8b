import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('test/screenshots.ts');
