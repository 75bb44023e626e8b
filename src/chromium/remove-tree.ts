import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Removes a directory whose content is a session's, even while that runs. By the program, which goes down by open directories: a link
 * that is put in the way while Node's `rm` walks by names would lead that out of it. What the session has locked against its own
 * user, who is ours where the service is not root, is unlocked first.
 */
export async function removeTree(path: string): Promise<void> {
  await remove(path).catch(async () => {
    await run('chmod', ['-R', 'u+rwX', '--', path], { cwd: '/' }).catch(() => {}); // it goes as far as it can; links are passed over
    await remove(path);
  });
}

const remove = (path: string) => run('rm', ['-rf', '--', path], { cwd: '/' });
