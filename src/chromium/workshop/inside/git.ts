import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { say } from './say.ts';

export interface GitSource {
  url: string;
  ref: string;
  token: string | null;
}

/** Fetches one ref of a repository with the system's git. */
export async function fetchSource({ url, ref, token }: GitSource, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const authorization = `Authorization: Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  // In the environment, since a command line can be read by others.
  const secret =
    token === null
      ? {}
      : { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'http.extraHeader', GIT_CONFIG_VALUE_0: authorization };
  const env = { ...process.env, ...secret, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' };
  const git = async (...args: string[]) => {
    const child = spawn(
      'git',
      ['-c', 'protocol.allow=never', '-c', 'protocol.https.allow=always', ...http(url), ...args],
      {
        cwd: to,
        env,
        stdio: ['ignore', 2, 2],
      },
    );
    const [code] = (await once(child, 'exit')) as [number | null];
    return code === 0;
  };
  say(`git fetch ${ref}`);
  await git('init', '--quiet');
  // Servers that only hand out files cannot cut the history.
  const fetched = (await git('fetch', '--quiet', '--depth=1', url, ref)) || (await git('fetch', '--quiet', url, ref));
  if (!fetched || !(await git('checkout', '--quiet', '--detach', 'FETCH_HEAD')))
    throw new Error(`The source cannot be fetched: git found no '${ref}' at ${url}, or may not read it.`);
  await rm(join(to, '.git'), { recursive: true, force: true });
}

const http = (url: string) => (url.startsWith('http:') ? ['-c', 'protocol.http.allow=always'] : []);
