import { join } from 'node:path';
import type { Config } from '../config.ts';
import { createOnce } from '../lib/files.ts';
import { pick } from '../lib/ids.ts';
import type { ApiKeyService } from './api-keys.ts';

/**
 * The first key is the operator's (CORRAL_API_KEY), or made here and kept in a private file. Undefined when there is
 * nothing to print: the key was printed before, or it is CORRAL_API_KEY.
 */
export async function letFirstKeyIn(
  keys: ApiKeyService,
  { apiKey, dataDir }: Pick<Config, 'apiKey' | 'dataDir'>,
): Promise<string | undefined> {
  if (apiKey) return void (await keys.adopt(apiKey, 'CORRAL_API_KEY'));
  const file = join(dataDir, 'api-key');
  const known = await keys.anyKey();
  // The first key of another node is valid on all nodes, so this node makes none.
  const key = await createOnce(file, () =>
    known ? 'none' : `sk_${pick('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', 40)}`,
  );
  if (key === 'none') return undefined;
  return (await keys.adopt(key, 'first key')) === 'added' ? key : undefined;
}
