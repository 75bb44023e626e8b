import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file that scripts/web.mjs bundles for browsers, by its path in the build. The same place from src/ and from dist/. */
export const webFile = (path: string): Buffer => readFileSync(join(import.meta.dirname, '../../dist', path));
