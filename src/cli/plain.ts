import { createWriteStream } from 'node:fs';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { IncomingMessage } from 'node:http';
import { ask, eventsOf, jsonOf, whole, type Question } from './client/http.ts';
import { fillPath, operation, pathParameters } from './client/operations.ts';
import { cell, size, valueAt } from './output.ts';
import { counted, openProgress } from './progress.ts';
import type { Call, Verb } from './table.ts';

/** A verb with one operation: sends the request, and prints the answer by its type. */
export async function perform(verb: Verb, call: Call): Promise<void> {
  const question = questionOf(verb, call);
  const what = operation(verb.operation!);
  if (verb.columns) return printList(verb, call, question);
  const answer = await ask(call.target(), question);
  if (what.answers === 'text/event-stream') return printEvents(call, answer);
  const bytes = what.answers !== undefined && !/json/.test(what.answers);
  if (bytes && answer.statusCode === 200) return save(call, answer, fileOf(verb, call));
  const thing = await jsonOf<unknown>(answer);
  if (thing === undefined || verb.done) return call.output.done(fill(verb.done ?? 'Done.', call), thing);
  call.output.one(thing);
}

function questionOf(verb: Verb, call: Call): Question {
  const what = operation(verb.operation!);
  const words = call.arguments.slice(0, pathParameters(what.path).length) as string[];
  return {
    method: what.method,
    path: fillPath(what.path, words),
    query: call.query,
    ...(call.body === undefined ? {} : { body: call.body }),
  };
}

async function printList(verb: Verb, call: Call, question: Question): Promise<void> {
  const rows: object[] = [];
  let query = question.query ?? {};
  for (;;) {
    const answer = await ask(call.target(), { ...question, query });
    const page = await jsonOf<unknown>(answer);
    rows.push(...((verb.rows === undefined ? page : valueAt(page, verb.rows)) as object[]));
    const more = answer.headers['x-has-more'] === 'true';
    const offset = answer.headers['x-next-offset'];
    if (!more || !call.options['all']) {
      call.output.list(rows, verb.columns!);
      if (more) call.output.note(`There are more: add --all${offset ? `, or --offset ${String(offset)}` : ''}.`);
      return;
    }
    query = { ...query, offset };
  }
}

async function printEvents(call: Call, answer: IncomingMessage): Promise<void> {
  for await (const event of eventsOf<object>(answer)) call.output.event(event, cell(event));
}

/**
 * Bytes are written to the named file, to stdout if that is a file or a pipe, and otherwise to a file with a default name: never to a
 * terminal, and never into JSON output.
 */
export async function save(call: Call, answer: IncomingMessage, name: string): Promise<void> {
  const given = call.options['file'] as string | undefined;
  const toStdout = given === '-' || (given === undefined && !process.stdout.isTTY && call.output.format === 'table');
  if (toStdout) return pipeline(whole(answer), process.stdout, { end: false });
  const file = given ?? name;
  const progress = openProgress(basename(file), Number(answer.headers['content-length'] ?? 0));
  await pipeline(counted(whole(answer), progress), createWriteStream(file));
  call.output.done(`${file}  ${size(progress.count())}`, { file, bytes: progress.count() });
}

function fileOf(verb: Verb, call: Call): string {
  return fill(verb.file ?? '{}.bin', call);
}

function fill(text: string, call: Call): string {
  return text.replaceAll('{}', () => cell(call.arguments[0]).replaceAll('/', '_'));
}
