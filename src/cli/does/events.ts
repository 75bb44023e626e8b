import { ask, eventsOf } from '../client/http.ts';
import { untilInterrupted } from '../interrupt.ts';
import { cell } from '../output.ts';
import type { Call } from '../table.ts';

interface ProjectEvent {
  id: number;
  type: string;
  time: string;
  resource_id?: string;
  data?: unknown;
}

export async function follow(call: Call): Promise<void> {
  const most = Number(call.options['count'] ?? Infinity);
  const since = call.options['since'] as string | undefined;
  const headers: Record<string, string> = since === undefined ? {} : { 'last-event-id': since };
  await untilInterrupted(async (signal) => {
    let seen = 0;
    const answer = await ask(call.target(), { method: 'GET', path: '/events', headers, signal });
    for await (const event of eventsOf<ProjectEvent>(answer)) {
      if (event.type === 'stream.opened') {
        call.output.note('Following.');
        continue; // nothing has changed
      }
      const { id, type, time, resource_id, data } = event;
      call.output.event(event, [id, time, type, resource_id, data].map((part) => cell(part)).join('  '));
      if (++seen >= most) break;
    }
  });
}
