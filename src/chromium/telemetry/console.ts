import { record } from '../../lib/shape.ts';
import type { Watch } from './watch.ts';
import { cleanUrl, cutText } from './redact.ts';
import { isConsoleCall, isContext, isContextGone, isException } from './shapes.ts';
import { contextOf, isDocument, type Target } from './target.ts';

const MOST_ARGS = 50;
const MOST_TEXT = 8192;
/** For all arguments of a call together: each event is searched for secrets. */
const MOST_SAID = 128 * 1024;
const MOST_CALLS = 50;
const MOST_PARENTS = 4;
/** For all addresses of a stack together: the search for secrets in them costs time for each. */
const MOST_ADDRESSES = 32 * 1024;
const MOST_CONTEXTS = 2000;

/** console_log and console_error: calls of the console, and uncaught exceptions. */
export function consoleEvents(watch: Watch): void {
  const { client, targets, emit } = watch;
  const placeOf = (target: Target, contextId: number | undefined) => ({
    frameId: contextId === undefined ? undefined : target.contexts.get(contextId),
  });

  client.on('Runtime.executionContextCreated', isContext, ({ context: { id, auxData } }, sessionId) => {
    const target = targets.get(sessionId);
    const frameId = auxData?.['frameId'];
    if (target && isDocument(target) && typeof frameId === 'string' && target.contexts.size < MOST_CONTEXTS)
      target.contexts.set(id, frameId);
  });
  client.on('Runtime.executionContextDestroyed', isContextGone, ({ executionContextId }, sessionId) => {
    targets.get(sessionId)?.contexts.delete(executionContextId);
  });
  client.on('Runtime.executionContextsCleared', record, (_, sessionId) => {
    targets.get(sessionId)?.contexts.clear();
  });

  client.on('Runtime.consoleAPICalled', isConsoleCall, (call, sessionId) => {
    const target = targets.get(sessionId);
    if (!target?.consoleIsLive || !watch.captures('console')) return;
    let left = MOST_SAID;
    const args = call.args.slice(0, MOST_ARGS).map((arg) => {
      const said = cutText(textOf(arg), Math.min(MOST_TEXT, left));
      left = Math.max(0, left - said.length);
      return said;
    });
    emit({
      type: call.type === 'error' ? 'console_error' : 'console_log',
      from: 'Runtime.consoleAPICalled',
      target,
      data: {
        ...contextOf(target, placeOf(target, call.executionContextId)),
        level: call.type,
        text: args[0] ?? '',
        args,
        stack_trace: call.stackTrace && stackOf(call.stackTrace),
      },
    });
  });

  client.on('Runtime.exceptionThrown', isException, ({ exceptionDetails: thrown }, sessionId) => {
    const target = targets.get(sessionId);
    if (!target?.consoleIsLive || !watch.captures('console')) return;
    const what = thrown.exception === undefined ? '' : ` ${messageOf(thrown.exception)}`;
    emit({
      type: 'console_error',
      from: 'Runtime.exceptionThrown',
      target,
      data: {
        ...contextOf(target, placeOf(target, thrown.executionContextId)),
        text: cutText(`${thrown.text}${what}`, MOST_TEXT),
        line: thrown.lineNumber,
        column: thrown.columnNumber,
        source_url: thrown.url === undefined ? undefined : cleanUrl(thrown.url),
        stack_trace: thrown.stackTrace && stackOf(thrown.stackTrace),
      },
    });
  });
}

const asText = (value: unknown) => (typeof value === 'string' ? value : '');

/** A remote object as the console shows it, on one line. */
function textOf(arg: Record<string, unknown>): string {
  const { type, subtype, value, unserializableValue, description, preview } = arg;
  if (typeof value === 'string') return value;
  if (type === 'undefined') return 'undefined';
  if (subtype === 'null') return 'null';
  if (typeof unserializableValue === 'string') return unserializableValue;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value !== undefined) return JSON.stringify(value) ?? '';
  if (subtype === 'error' || type === 'function' || type === 'symbol') return asText(description);
  if (record(preview)) return previewOf(preview);
  return asText(description);
}

function previewOf({ subtype, description, properties, overflow }: Record<string, unknown>): string {
  if (!Array.isArray(properties)) return asText(description);
  const isList = subtype === 'array';
  const shown = properties.filter(record).map(({ name, value, type, subtype: kind }) => {
    const text = type === 'string' && kind === undefined ? JSON.stringify(asText(value)) : asText(value);
    return isList ? text : `${asText(name)}: ${text}`;
  });
  if (overflow === true) shown.push('…');
  const name = description === 'Object' || isList ? '' : `${asText(description)} `;
  return isList ? `[${shown.join(', ')}]` : `${name}{${shown.join(', ')}}`;
}

/** `TypeError: x is not a function`, without the stack that follows in an error's description. */
function messageOf(exception: Record<string, unknown>): string {
  return textOf(exception).split('\n    at ', 1)[0]!;
}

/** A stack as CDP has it, bounded. */
function stackOf(
  stack: Record<string, unknown>,
  depth = 0,
  left = { addresses: MOST_ADDRESSES },
): Record<string, unknown> {
  const { description, callFrames, parent } = stack;
  const calls: unknown[] = Array.isArray(callFrames) ? callFrames : [];
  return {
    ...(typeof description === 'string' && { description: cutText(description, 256) }),
    callFrames: calls
      .slice(0, MOST_CALLS)
      .filter(record)
      .map(({ functionName, scriptId, url: full, lineNumber, columnNumber }) => {
        const url = cutText(asText(full), left.addresses);
        left.addresses = Math.max(0, left.addresses - url.length);
        return {
          functionName: cutText(asText(functionName), 256),
          scriptId: cutText(asText(scriptId), 64),
          url: cleanUrl(url),
          lineNumber: Number(lineNumber) || 0,
          columnNumber: Number(columnNumber) || 0,
        };
      }),
    ...(record(parent) && depth < MOST_PARENTS && { parent: stackOf(parent, depth + 1, left) }),
  };
}
