import { object, text } from '../../lib/shape.ts';
import type { EventContext } from '../../lib/telemetry-events.ts';
import { webFile } from '../../lib/web-files.ts';
import { isInteractionReport, type InteractionReport } from './interaction-report.ts';
import { isBindingCall } from './shapes.ts';
import { contextOf, type NewEvent, type Target } from './target.ts';
import type { Watch } from './watch.ts';

let script: string | undefined;

function scriptFor(binding: string): string {
  script ??= webFile('chromium/telemetry/web/interaction.js').toString();
  return `${script}.listen(${JSON.stringify(binding)})`;
}

/** interaction_click, interaction_key and interaction_scroll_settled, as a script in every document reports them. */
export function interactionEvents(watch: Watch) {
  const { client, targets, emit, world } = watch;
  const binding = world; // as hard to guess
  const scripts = new Map<Target, Promise<string | undefined>>();

  client.on('Runtime.bindingCalled', isBindingCall, ({ name, payload, executionContextId }, sessionId) => {
    const target = targets.get(sessionId);
    if (!target || name !== binding || !watch.captures('interaction')) return;
    const report: unknown = JSON.parse(payload);
    if (!isInteractionReport(report)) return;
    const where = contextOf(target, { frameId: target.contexts.get(executionContextId) });
    emit({ ...newEvent(report, where), from: 'Runtime.bindingCalled', target });
  });

  return {
    /** Puts the script into the target's documents, the present and the coming ones. Runtime has to be enabled. */
    async start(target: Target): Promise<void> {
      const { sessionId } = target;
      const bound = client.send('Runtime.addBinding', { name: binding, executionContextName: world }, sessionId);
      const added = client
        .ask(
          object({ identifier: text(128) }),
          'Page.addScriptToEvaluateOnNewDocument',
          { source: scriptFor(binding), worldName: world, runImmediately: true },
          sessionId,
        )
        .then(({ identifier }) => identifier)
        .catch(() => undefined);
      scripts.set(target, added);
      await Promise.all([bound.catch(() => {}), added]);
    },

    /** Documents that have the script keep it; without its binding it is silent. */
    async stop(target: Target): Promise<void> {
      const identifier = await scripts.get(target);
      scripts.delete(target);
      const { sessionId } = target;
      client.send('Runtime.removeBinding', { name: binding }, sessionId).catch(() => {});
      if (identifier !== undefined)
        client.send('Page.removeScriptToEvaluateOnNewDocument', { identifier }, sessionId).catch(() => {});
    },

    gone: (target: Target) => void scripts.delete(target),
  };
}

function newEvent(report: InteractionReport, where: EventContext): NewEvent {
  const { selector, tag, x, y, text, key, from_x, from_y, to_x, to_y } = report;
  switch (report.type) {
    case 'click':
      return { type: 'interaction_click', data: { ...where, x, y, selector, tag, text } };
    case 'key':
      return { type: 'interaction_key', data: { ...where, key, selector, tag } };
    case 'scroll': {
      const data = { ...where, from_x, from_y, to_x, to_y, target_selector: selector };
      return { type: 'interaction_scroll_settled', data };
    }
  }
}
