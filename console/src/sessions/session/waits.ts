import type { BrowserTelemetryEvent } from '../../api/schema.gen.d.ts';

interface OpenRequest {
  id: string;
  method: string;
  url: string;
  since: string;
}

/** Requests without an answer and without a failure so far. `events` are newest first. */
export function openRequests(events: readonly { event: BrowserTelemetryEvent }[]): OpenRequest[] {
  const settled = new Set<string>();
  const open: OpenRequest[] = [];
  for (const { event } of events) {
    const id = 'data' in event && event.data && 'request_id' in event.data ? event.data.request_id : undefined;
    if (!id) continue;
    if (event.type === 'network_response' || event.type === 'network_loading_failed') settled.add(id);
    if (event.type !== 'network_request' || settled.has(id)) continue;
    settled.add(id);
    const { method = 'GET', url = '' } = event.data ?? {};
    open.push({ id, method, url, since: new Date(event.ts / 1000).toISOString() });
  }
  return open;
}
