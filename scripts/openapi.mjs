// Writes the generated files (openapi.json, docs/errors.md, docs/lifecycles.md, docs/settings.md), or with --check compares them.
import { prepare } from './bootstrap.mjs';

await prepare({ build: true, system: 'skip' });
await import('../dist/openapi.js');
