/* oxlint-disable unicorn/require-post-message-target-origin -- messages between threads have no origin */
import { Worker } from 'node:worker_threads';
import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { EgressError } from '../../chromium/egress/refusals.ts';
import { anyText, list, object, optional, text, type Checked } from '../../lib/shape.ts';
import { urlOf } from '../../lib/urls.ts';
import { itemIn } from './connect.ts';
import { contentsOf, type Field } from './fields.ts';
import {
  elementsOf,
  itemCollection,
  mostItems,
  operationMs,
  SourceFailure,
  valueOf,
  type Contents,
  type Source,
  type SourceVault,
} from './source.ts';

const Vault = object({ id: text(255), title: text(1024) });
const Login = object({ vault: Vault, id: text(255), title: text(4096), urls: optional(list(text(8192))) });
const Item = object({
  fields: list(object({ id: text(255), title: text(4096), fieldType: text(64), value: anyText })),
});

const mostBytes = 16 * 1024 * 1024;
/** The name of the password manager in refusals. */
const from = 'The password manager';

interface Task {
  task: 'vaults' | 'items' | 'read';
  vaultId?: string;
  itemId?: string;
}

/** The same password manager without a Connect server: a service account's token, and the manager's official SDK. */
export function serviceAccountSource(
  token: string,
  version: string,
  request: RequestDirectly,
  sdk = '@1password/sdk',
): Source {
  const run = (task: Task) => inWorker({ sdk, token, version, mostItems, ...task }, request);
  return {
    async vaults() {
      const vaults: SourceVault[] = [];
      for await (const { id, title } of elementsOf(await run({ task: 'vaults' }), [], Vault, from))
        vaults.push({ id, name: title });
      return vaults;
    },

    async items() {
      const { items, add } = itemCollection();
      for await (const { vault, id, title, urls = [] } of elementsOf(await run({ task: 'items' }), [], Login, from))
        add(itemIn({ id: vault.id, name: vault.title }, id, title, urls));
      return items;
    },

    async read({ id, vault_id }) {
      return contents(await valueOf(await run({ task: 'read', vaultId: vault_id, itemId: id }), Item, from));
    },
  };
}

function contents({ fields }: Checked<typeof Item>): Contents {
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
type Message = { ask: Asked } | { done: Uint8Array } | { failed: { name: string; message: string } };

/** Nothing of the operation is left when this returns: the thread is ended, and its requests have deadlines. */
async function inWorker(
  workerData: Task & { sdk: string; token: string; version: string; mostItems: number },
  request: RequestDirectly,
): Promise<Buffer> {
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
    const done = await new Promise<Uint8Array>((resolve, reject) => {
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
    return Buffer.from(done.buffer, done.byteOffset, done.byteLength);
  } finally {
    clearTimeout(late);
    await worker.terminate();
  }
}

async function answer({ url, method, headers, body }: Asked, request: RequestDirectly) {
  const address = urlOf(url);
  if (address?.protocol !== 'https:') throw new EgressError('destination_refused', 'Only https leads there.');
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

/** The SDK's own words may quote what it was given, so they only select the message. */
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
