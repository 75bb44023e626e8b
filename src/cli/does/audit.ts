import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { ask, jsonOf } from '../client/http.ts';
import type { Call } from '../table.ts';

const columns = ['timestamp', 'user_id', 'method', 'path', 'status', 'client_ip'];
const DAY_MS = 86_400_000;

/** The last day, unless times were given. */
function span(call: Call) {
  const now = Date.now();
  return {
    start: call.options['start'] ?? new Date(now - DAY_MS).toISOString(),
    end: call.options['end'] ?? new Date(now).toISOString(),
  };
}

export async function list(call: Call): Promise<void> {
  const rows: object[] = [];
  let query: Record<string, unknown> = { ...call.query, ...span(call) };
  for (;;) {
    const answer = await ask(call.target(), { method: 'GET', path: '/audit-logs', query });
    rows.push(...(await jsonOf<object[]>(answer)));
    const token = answer.headers['x-next-page-token'];
    if (!token || !call.options['all']) {
      call.output.list(rows, columns);
      if (token) call.output.note(`There are more: add --all, or --page-token ${String(token)}.`);
      return;
    }
    query = { ...query, page_token: token };
  }
}

/** Every entry as a line of JSON, chunk by chunk. */
export async function exportAll(call: Call): Promise<void> {
  const given = call.options['file'] as string | undefined;
  const toStdout = given === '-' || (given === undefined && !process.stdout.isTTY && call.output.format === 'table');
  const file = given ?? 'audit.jsonl';
  let rows = 0;
  let query: Record<string, unknown> = { ...call.query, ...span(call), format: 'jsonl' };
  for (let more = true, flags = 'w'; more; flags = 'a') {
    const answer = await ask(call.target(), { method: 'GET', path: '/audit-logs/export/chunk', query });
    await (toStdout
      ? pipeline(answer, process.stdout, { end: false })
      : pipeline(answer, createWriteStream(file, { flags })));
    rows += Number(answer.headers['x-row-count'] ?? 0);
    more = answer.headers['x-has-more'] === 'true';
    query = { ...query, cursor: answer.headers['x-next-cursor'] };
  }
  if (!toStdout) call.output.done(`${file}  ${rows} entries`, { file, entries: rows });
}
