import { ask, askJson, eventsOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { cell } from '../output.ts';
import { untilInterrupted } from '../interrupt.ts';
import { word, type Call } from '../table.ts';

interface Change {
  type: string;
  path: string;
}

/** The watch is taken down on every way out: a session has room for few. */
export async function watch(call: Call): Promise<void> {
  const id = word(call, 0);
  const target = call.target();
  const path = fillPath('/browsers/{id}/fs/watch', [id]);
  const { watch_id } = await askJson<{ watch_id: string }>(target, { method: 'POST', path, body: call.body });
  const most = Number(call.options['count'] ?? Infinity);
  try {
    await untilInterrupted(async (signal) => {
      const events = fillPath('/browsers/{id}/fs/watch/{watch_id}/events', [id, watch_id]);
      const answer = await ask(target, { method: 'GET', path: events, signal });
      call.output.note(`Watching ${cell(call.body!['path'])}.`);
      let seen = 0;
      for await (const change of eventsOf<Change>(answer)) {
        call.output.event(change, `${change.type.padEnd(8)} ${cell(change.path)}`);
        if (++seen >= most) break;
      }
    });
  } finally {
    const stop = fillPath('/browsers/{id}/fs/watch/{watch_id}', [id, watch_id]);
    await askJson(target, { method: 'DELETE', path: stop }).catch(() => {}); // the session may have ended
  }
}
