import { ask } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { Fault } from '../fault.ts';
import { save } from '../plain.ts';
import { word, type Call } from '../table.ts';

export async function downloadProfile(call: Call): Promise<void> {
  const path = fillPath('/profiles/{id}/download', [word(call, 0)]);
  const answer = await ask(call.target(), { method: 'GET', path, query: call.query });
  const { format = 'tar.zst' } = call.query as { format?: string };
  if (answer.statusCode !== 202) return save(call, answer, `${word(call, 0).replaceAll('/', '_')}.${format}`);
  answer.resume();
  throw new Fault('Nothing was saved to this profile yet.');
}
