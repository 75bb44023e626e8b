// Writes what is read off the code (openapi.json, docs/errors.md, docs/lifecycles.md, docs/settings.md), or with --check compares it.
import { prepare } from './bootstrap.mjs';

await prepare({ build: true, system: 'skip' });
await import('../dist/openapi.js');
