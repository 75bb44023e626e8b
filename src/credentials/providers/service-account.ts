/* oxlint-disable unicorn/require-post-message-target-origin -- messages between threads have no origin */
import { Worker } from 'node:worker_threads';
import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { EgressError } from '../../chromium/egress/refusals.ts';
import { anyText, list, object, optional, text, type Check } from '../../lib/shape.ts';
import { itemIn } from './connect.ts';
import { contentsOf, type Field } from './fields.ts';
import { mostItems, operationMs, SourceFailure, type Contents, type Source, type SourceItem } from './source.ts';

const Vaults = list(object({ id: text(255), title: text(1024) }));
const Overview = object({
  id: text(255),
  title: text(4096),
  category: text(64),
  websites: optional(list(object({ url: text(8192), autofillBehavior: optional(text(64)) }))),
});
const Lists = list(object({ vault: object({ id: text(255), title: text(1024) }), items: list(Overview) }));
const Item = object({
  fields: list(object({ id: text(255), title: text(4096), fieldType: text(64), value: anyText })),
});

const logins = new Set(['Login', 'Password']);
const mostBytes = 16 * 1024 * 1024;

interface Task {
  task: 'vaults' | 'items' | 'read';
  vaultId?: string;
  itemId?: string;
}

/** The same password manager without a Connect server: a service account's token, and the manager's official SDK. */
export function serviceAccountSource(token: string, version: string, request: RequestDirectly): Source {
  const run = <T>(task: Task, shape: Check<T>) => inWorker({ token, version, ...task }, shape, request);
  return {
    vaults: async () => (await run({ task: 'vaults' }, Vaults)).map(({ id, title }) => ({ id, name: title })),
    items: async () => listed(await run({ task: 'items' }, Lists)),
    read: async ({ id, vault_id }) => contents(await run({ task: 'read', vaultId: vault_id, itemId: id }, Item)),
  };
}

type Checked<C> = C extends Check<infer T> ? T : never;

export function listed(lists: Checked<typeof Lists>): SourceItem[] {
  const items = lists.flatMap(({ vault, items }) =>
    items
      .filter(({ category }) => logins.has(category))
      .map(({ id, title, websites = [] }) => {
        // Its owner decided that nothing is filled there.
        const urls = websites.filter((site) => site.autofillBehavior !== 'Never').map(({ url }) => url);
        return itemIn({ id: vault.id, name: vault.title }, id, title, urls);
      }),
  );
  return items.slice(0, mostItems);
}

export function contents({ fields }: Checked<typeof Item>): Contents {
  return contentsOf(
    fields.flatMap(({ id, title, fieldType, value }): Field[] => {
      if (fieldType === 'Totp') return [{ kind: 'totp', label: title, value }];
      if (!['Text', 'Concealed', 'Email', 'Phone', 'Menu', 'Url'].includes(fieldType)) return [];
      return [{ kind: id === 'username' || id === 'password' ? id : 'other', label: title, value }];
    }),
  );
}

interface Asked {
  id: number;
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: Uint8Array;
}
type Message = { ask: Asked } | { done: unknown } | { failed: { name: string; message: string } };

/** Nothing of the operation is left when this returns: the thread is ended, and its requests have deadlines. */
async function inWorker<T>(
  workerData: Task & { token: string; version: string },
  shape: Check<T>,
  request: RequestDirectly,
): Promise<T> {
  const worker = new Worker(new URL('service-account-worker.mjs', import.meta.url), {
    workerData,
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  // What it prints may have parts of the token.
  worker.stdout.resume();
  worker.stderr.resume();
  let late: NodeJS.Timeout | undefined;
  /** The reason of the last request that failed: the SDK only says that one did. */
  let unreachable: EgressError | undefined;
  try {
    const done = await new Promise<unknown>((resolve, reject) => {
      late = setTimeout(
        () => reject(new SourceFailure('timeout', `The password manager was not done within ${operationMs / 1000} s.`)),
        operationMs,
      );
      worker.on('error', (error) => reject(broken(error)));
      worker.on('exit', () => reject(broken()));
      worker.on('message', (message: Message) => {
        if ('done' in message) resolve(message.done);
        else if ('failed' in message) reject(unreachable ? sourceFailure(unreachable) : sdkFailure(message.failed));
        else
          answer(message.ask, request).then(
            (reply) => worker.postMessage({ id: message.ask.id, answer: reply }),
            (error: unknown) => {
              if (error instanceof EgressError) unreachable = error;
              worker.postMessage({ id: message.ask.id, error: 'the request failed' });
            },
          );
      });
    });
    if (!shape(done)) throw new SourceFailure('bad_answer', 'What the password manager’s SDK returned cannot be read.');
    return done;
  } finally {
    clearTimeout(late);
    await worker.terminate();
  }
}

async function answer({ url, method, headers, body }: Asked, request: RequestDirectly) {
  const address = new URL(url);
  if (address.protocol !== 'https:') throw new EgressError('destination_refused', 'Only https leads there.');
  return request(address, { method, headers, body, timeoutMs: 15_000, mostBytes });
}

function sourceFailure(error: EgressError): SourceFailure {
  if (error.code === 'destination_refused')
    return new SourceFailure(
      'address_refused',
      `The token leads to an address that is not public. ${error.remedy ?? ''}`.trim(),
    );
  return new SourceFailure(error.code === 'connect_timeout' ? 'timeout' : 'unreachable', error.message, error);
}

/** The SDK's own words may quote what it was given, so they only decide what is said. */
function sdkFailure({ name, message }: { name: string; message: string }): SourceFailure {
  if (name === 'RateLimitExceededError' || /rate limit/i.test(message))
    return new SourceFailure('busy', 'The password manager gets too many requests with this token. Try again later.');
  if (/not found|no item|isn't in/i.test(message))
    return new SourceFailure('not_found', 'The password manager has no such item, or the token does not see it.');
  return new SourceFailure(
    'token_refused',
    'The password manager refuses the token. Send the token of a service account (ops_…), or set server_url for a Connect server.',
  );
}

const broken = (cause?: unknown) =>
  new SourceFailure('token_refused', 'The password manager’s SDK cannot work with this token.', cause);
