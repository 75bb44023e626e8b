import { ask, eventsOf, type Question } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { cell } from '../output.ts';
import { word, type Call } from '../table.ts';

interface LogEvent {
  event: string;
  timestamp?: string;
  message?: string;
}

export async function browserLogs(call: Call): Promise<void> {
  const path = fillPath('/browsers/{id}/logs/stream', [word(call, 0)]);
  const file = call.query['path'];
  const source = call.options['source'] ?? (file === undefined ? 'supervisor' : 'path');
  const process = source === 'supervisor' ? { supervisor_process: call.query['supervisor_process'] ?? 'chromium' } : {};
  const query = { ...process, ...call.query, source, follow: call.options['follow'] === true };
  await printLog(call, { method: 'GET', path, query });
}

/** The lines of a log. Heartbeats are not printed. */
async function printLog(call: Call, question: Question): Promise<void> {
  for await (const event of eventsOf<LogEvent>(await ask(call.target(), question))) {
    if (/heartbeat/.test(event.event)) continue;
    call.output.event(event, event.event === 'log' ? cell(event.message?.trimEnd()) : undefined);
  }
}
