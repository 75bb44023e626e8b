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

const { token, version, task, vaultId, itemId } = workerData;
try {
  const { createClient } = await import('@1password/sdk');
  const client = await createClient({ auth: token, integrationName: 'Corral', integrationVersion: version });
  parentPort.postMessage({ done: await perform(client) });
} catch (error) {
  parentPort.postMessage({ failed: { name: String(error?.name), message: String(error?.message ?? error) } });
}

async function perform({ vaults, items }) {
  if (task === 'read') return plain(await items.get(vaultId, itemId));
  const found = (await vaults.list()).map(({ id, title }) => ({ id, title }));
  if (task === 'vaults') return found;
  const lists = [];
  for (const vault of found) lists.push({ vault, items: plain(await items.list(vault.id)) });
  return lists;
}

/** What a message can carry: no dates, no classes. */
function plain(value) {
  return JSON.parse(JSON.stringify(value));
}
