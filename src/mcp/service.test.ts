import { expect, test } from 'vitest';
import { memory } from '../lib/byte-budget.ts';
import { mcpService } from './service.ts';

test('a request with many messages is refused before any of them is answered', async () => {
  const operation = () => {
    throw new Error('No tool is needed.');
  };
  const service = mcpService({ url: () => 'http://127.0.0.1:1', operation, disabled: [], version: '1' });
  const body = Array.from({ length: 21 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
  const signal = new AbortController().signal;
  const call = { headers: new Headers(), passed: {}, signal, body, group: memory.group() };
  await expect(service.answer(call)).rejects.toMatchObject({ code: 'bad_request', status: 400 });
});
