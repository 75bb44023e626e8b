import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs once before the files of each project: a directory for what all files of a run share; see new-database.ts and shared-server.ts. */
export default function setup(): (() => Promise<void>) | undefined {
  if (process.env['CORRAL_TEST_SHARED_DIR']) return undefined;
  const dir = mkdtempSync(join(tmpdir(), 'corral-vitest-'));
  process.env['CORRAL_TEST_SHARED_DIR'] = dir;
  return async () => {
    const { stopSharedServer } = await import('./shared-server.ts');
    await stopSharedServer(dir);
    rmSync(dir, { recursive: true, force: true });
  };
}
