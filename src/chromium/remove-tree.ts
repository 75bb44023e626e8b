import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Removes a directory whose content is a session's, while that runs. By the program, which goes down by open directories: a link that
 * is put in the way while Node's `rm` walks by names would lead that out of it.
 */
export async function removeTree(path: string): Promise<void> {
  await run('rm', ['-rf', '--', path], { cwd: '/' });
}
