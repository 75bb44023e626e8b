import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { save } from '../plain.ts';
import { word, type Call } from '../table.ts';

/** The service answers with 202 while it makes the video. */
export async function downloadReplay(call: Call): Promise<void> {
  const path = fillPath('/browsers/{id}/replays/{replay_id}', [word(call, 0), word(call, 1)]);
  for (;;) {
    const answer = await ask(call.target(), { method: 'GET', path });
    if (answer.statusCode !== 202) return save(call, answer, `${word(call, 1)}.mp4`);
    answer.resume();
    call.output.note('It is being made.');
    await sleep(Math.max(1, Number(answer.headers['retry-after'] ?? 1)) * 1000);
  }
}
