import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system of the given megabytes and inodes that nothing else writes to. Mounting it requires root. */
export function smallDisk(megabytes: number, inodes: number) {
  const path = mkdtempSync(join(tmpdir(), 'corral-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,nr_inodes=${inodes}`, 'corral-test', path]);
  let mounted = true;
  function remove() {
    if (!mounted) return;
    mounted = false;
    execFileSync('umount', ['--lazy', path]);
    rmdirSync(path);
  }
  process.once('exit', remove); // also when a test never came to its end
  return { path, remove };
}
