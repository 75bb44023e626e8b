import { ask, askJson, eventsOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { exit, Fault, Refused } from '../fault.ts';
import { untilInterrupted } from '../interrupt.ts';
import { cell } from '../output.ts';
import type { Call } from '../table.ts';
import { word } from '../table.ts';

interface LogEvent {
  event: string;
  timestamp?: string;
  message?: string;
}

export async function appLogs(call: Call): Promise<void> {
  const path = await pathOf(call, word(call, 0));
  const follow = call.options['follow'] === true;
  const { since } = call.options;
  await untilInterrupted(async (signal) => {
    const answer = await ask(call.target(), { method: 'GET', path, query: { since }, signal });
    for await (const event of eventsOf<LogEvent>(answer)) {
      if (event.event === 'log')
        call.output.event(event, `${event.timestamp ?? ''}  ${cell(event.message?.trimEnd())}`);
      // All lines that are there come before the state.
      if (!follow && event.event.endsWith('_state')) break;
    }
  });
}

/** The events of an app, or of the deployment or the invocation with that id. */
async function pathOf(call: Call, name: string): Promise<string> {
  const target = call.target();
  const query = { app_name: name, version: call.options['version'], limit: 1 };
  const [app] = await askJson<{ deployment: string }[]>(target, { method: 'GET', path: '/apps', query });
  if (app) return fillPath('/deployments/{id}/events', [app.deployment]);
  for (const kind of ['deployments', 'invocations']) {
    const path = fillPath(`/${kind}/{id}`, [name]);
    try {
      await askJson(target, { method: 'GET', path });
      return `${path}/events`;
    } catch (error) {
      if (!(error instanceof Refused) || (error.status !== 404 && error.status !== 400)) throw error;
    }
  }
  throw new Fault(
    `There is no app, deployment or invocation '${cell(name)}'. \`corral apps list\` has the apps.`,
    exit.notFound,
  );
}
