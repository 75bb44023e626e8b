import { ask, jsonOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { exit } from '../fault.ts';
import { word, type Call } from '../table.ts';

/** The service answers with 204 when no browser became free in time. */
export async function acquire(call: Call): Promise<void> {
  const path = fillPath('/browser_pools/{id}/acquire', [word(call, 0)]);
  const answer = await ask(call.target(), { method: 'POST', path, body: call.body });
  if (answer.statusCode !== 204) return call.output.one(await jsonOf(answer));
  answer.resume();
  call.output.done('No browser became free in time.');
  process.exitCode = exit.refused;
}
