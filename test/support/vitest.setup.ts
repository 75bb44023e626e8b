import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs once before all files: a directory for what the files of a run share; see new-database.ts. */
export default function setup(): () => void {
  const dir = mkdtempSync(join(tmpdir(), 'corral-vitest-'));
  process.env['CORRAL_TEST_SHARED_DIR'] = dir;
  return () => rmSync(dir, { recursive: true, force: true });
}
