import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { ask, eventsOf, jsonOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { UsageError } from '../fault.ts';
import { cell } from '../output.ts';
import { untilInterrupted } from '../interrupt.ts';
import { save } from '../plain.ts';
import { word, type Call } from '../table.ts';

interface Envelope {
  seq: number;
  event: { type: string; ts?: number | string; data?: unknown };
}

export async function follow(call: Call): Promise<void> {
  const path = fillPath('/browsers/{id}/telemetry/stream', [word(call, 0)]);
  const most = Number(call.options['count'] ?? Infinity);
  await untilInterrupted(async (signal) => {
    let seen = 0;
    const answer = await ask(call.target(), { method: 'GET', path, query: call.query, signal });
    for await (const envelope of eventsOf<Envelope>(answer)) {
      call.output.event(envelope, `${envelope.seq}  ${cell(envelope.event.type)}  ${cell(envelope.event.data)}`);
      if (++seen >= most) break;
    }
  });
}

export async function exportTelemetry(call: Call): Promise<void> {
  const { as = 'har' } = call.options as { as?: string };
  const id = word(call, 0);
  if (as === 'jsonl') return exportEvents(call, id);
  if (as !== 'har' && as !== 'trace') throw new UsageError(`--as takes har, trace or jsonl, not '${as}'.`);
  const path = fillPath(`/browsers/{id}/telemetry/${as}`, [id]);
  const answer = await ask(call.target(), { method: 'GET', path });
  await save(call, answer, as === 'har' ? `${id}.har` : `${id}.trace.zip`);
}

/** Every event that is kept, page by page. */
async function exportEvents(call: Call, id: string): Promise<void> {
  const path = fillPath('/browsers/{id}/telemetry/events', [id]);
  const given = call.options['file'] as string | undefined;
  const toStdout = given === '-' || (given === undefined && !process.stdout.isTTY && call.output.format === 'table');
  const file = given ?? `${id}.telemetry.jsonl`;
  const sink = toStdout ? process.stdout : createWriteStream(file);
  let count = 0;
  let query: Record<string, unknown> = { limit: 100, since: '1970-01-01T00:00:00Z' };
  for (let more = true; more;) {
    const answer = await ask(call.target(), { method: 'GET', path, query });
    const page = await jsonOf<object[]>(answer);
    for (const event of page) if (!sink.write(`${JSON.stringify(event)}\n`)) await once(sink, 'drain');
    count += page.length;
    more = answer.headers['x-has-more'] === 'true';
    query = { limit: 100, offset: answer.headers['x-next-offset'] };
  }
  if (toStdout) return;
  sink.end();
  await once(sink, 'close');
  call.output.done(`${file}  ${count} events`, { file, events: count });
}
