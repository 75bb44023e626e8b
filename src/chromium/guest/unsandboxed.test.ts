import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import type { Browser } from '../browser/launch.ts';
import { guestOf } from './guest.ts';
import { openToolbox } from './toolbox.ts';

/** A browser that runs, as far as a guest is concerned. */
const browser = (confined: boolean, tools: string) =>
  ({
    confined,
    tools,
    kind: 'headless',
    adopt() {},
    inside: ([file = '', ...args]: string[]) => ({ file, args, options: { cwd: '/', env: { HOME: tmpdir() } } }),
  }) as unknown as Browser;

test('without a sandbox there is a guest only where the operator allows it', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-guest-'));
  const toolbox = openToolbox(dir);
  const common = { browser: browser(false, dir), toolbox, onCdp: () => {}, onDevtools: () => {}, log: silent };
  const refused = guestOf({ ...common, allowUnsandboxed: false });
  await expect(refused.call('ping', {})).rejects.toMatchObject({ code: 'unsandboxed' });
  const allowed = guestOf({ ...common, allowUnsandboxed: true });
  expect(await allowed.call('ping', {})).toEqual({});
  await allowed.close();
  await expect(allowed.call('ping', {})).rejects.toThrow('over');
  await rm(dir, { recursive: true });
});
