import { ask, askJson, eventsOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { Fault } from '../fault.ts';
import { parseJson } from '../fields.ts';
import { untilInterrupted } from '../interrupt.ts';
import { cell } from '../output.ts';
import type { Call } from '../table.ts';

interface Invocation {
  id: string;
  status: string;
  output?: string | null;
  status_reason?: string | null;
}

/** An interrupted command cancels its invocation. */
export async function invoke(call: Call): Promise<void> {
  const payload = call.options['payload'] as string | undefined;
  const body = {
    ...call.body,
    async: true,
    ...(payload === undefined ? {} : { payload: JSON.stringify(parseJson(payload, '--payload')) }),
  };
  const target = call.target();
  const made = await askJson<Invocation>(target, { method: 'POST', path: '/invocations', body });
  if (call.options['follow'] === false) return call.output.one(made);
  const path = fillPath('/invocations/{id}', [made.id]);
  let ended = false;
  try {
    await untilInterrupted(async (signal) => {
      const answer = await ask(target, { method: 'GET', path: `${path}/events`, signal });
      for await (const event of eventsOf<{ event: string; message?: string }>(answer))
        if (event.event === 'log') process.stderr.write(`${cell(event.message?.trimEnd())}\n`);
      ended = true;
    });
  } finally {
    if (!ended) {
      const cancelled = { status: 'failed', output: JSON.stringify('The command that started it was interrupted.') };
      await askJson(target, { method: 'PATCH', path, body: cancelled }).catch(() => {}); // it may have ended just now
    }
  }
  if (!ended) return;
  const done = await askJson<Invocation>(target, { method: 'GET', path });
  if (call.output.format !== 'table') call.output.one(done);
  else if (done.status === 'succeeded' && done.output) process.stdout.write(`${done.output}\n`);
  if (done.status !== 'succeeded') throw new Fault(cell(done.status_reason ?? done.output ?? 'The action failed.'));
}
