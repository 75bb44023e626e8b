import { fetchRaw } from '../api/client.ts';

/** The maximum size of an export in the memory of a tab: about 100 MB. */
const MOST_CHUNKS = 10;
const CHUNK = 20_000;

/** Has the browser save entries as JSON lines. `more`: there are more entries than fit into memory. */
export async function exportEntries(filter: Record<string, string>): Promise<{ entries: number; more: boolean }> {
  const parts: Blob[] = [];
  let entries = 0;
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ ...filter, format: 'jsonl', limit: String(CHUNK), ...(cursor && { cursor }) });
    const response = await fetchRaw(`/audit-logs/export/chunk?${query}`);
    parts.push(await response.blob());
    entries += Number(response.headers.get('X-Row-Count') ?? 0);
    cursor = response.headers.get('X-Next-Cursor');
  } while (cursor && parts.length < MOST_CHUNKS);
  save(new Blob(parts, { type: 'application/x-ndjson' }), 'audit-log.jsonl');
  return { entries, more: cursor !== null };
}

function save(file: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // By then the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
