/* oxlint-disable unicorn/require-post-message-target-origin -- messages between threads have no origin */
/**
 * Runs the password manager's own SDK for one operation. It works in a thread of its own because it computes for long
 * (key derivation), and because an error inside of its WebAssembly ends the process that it runs in. Its requests are
 * handed to the service, which checks where they go: the address is part of the token, so a user chooses it.
 */
import { parentPort, workerData } from 'node:worker_threads';

const waiting = new Map();
let asked = 0;

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const id = ++asked;
  const body = request.body ? new Uint8Array(await request.arrayBuffer()) : undefined;
  const { url, method } = request;
  const answer = await new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    parentPort.postMessage({ ask: { id, url, method, headers: Object.fromEntries(request.headers), body } });
  });
  const bodiless = [101, 204, 205, 304].includes(answer.status);
  const response = new Response(bodiless ? null : answer.body, { status: answer.status, headers: answer.headers });
  // The SDK parses this, and a response that was made by hand has none.
  Object.defineProperty(response, 'url', { value: url });
  return response;
};

parentPort.on('message', ({ id, answer, error }) => {
  const { resolve, reject } = waiting.get(id) ?? {};
  waiting.delete(id);
  if (answer) resolve?.(answer);
  else reject?.(new TypeError(error));
});

const { sdk, token, version, task, vaultId, itemId, mostItems } = workerData;
try {
  const { createClient } = await import(sdk);
  const client = await createClient({ auth: token, integrationName: 'Corral', integrationVersion: version });
  // To receive values as a message is one piece of work for the service. It reads JSON in pieces.
  const done = new TextEncoder().encode(JSON.stringify(await perform(client)));
  parentPort.postMessage({ done }, [done.buffer]);
} catch (error) {
  parentPort.postMessage({ failed: { name: String(error?.name), message: String(error?.message ?? error) } });
}

async function perform({ vaults, items }) {
  if (task === 'read') {
    const { fields } = await items.get(vaultId, itemId);
    return { fields: fields?.map(({ id, title, fieldType, value }) => ({ id, title, fieldType, value })) };
  }
  const found = (await vaults.list()).map(({ id, title }) => ({ id, title }));
  if (task === 'vaults') return found;
  const logins = [];
  for (const vault of found)
    for (const { id, title, category, websites } of await items.list(vault.id)) {
      if (category !== 'Login' && category !== 'Password') continue;
      // The owner of the item decided that nothing is filled at a site with `Never`.
      const urls = websites?.filter((site) => site.autofillBehavior !== 'Never').map(({ url }) => url);
      if (logins.push({ vault, id, title, urls }) >= mostItems) return logins;
    }
  return logins;
}
