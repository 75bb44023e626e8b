import { Socket } from 'node:net';
import { channel, type Channel, type Stream } from '../channel.ts';
import type { Args, Question } from '../protocol.ts';
import { driverAsks } from './driver.ts';
import { fileAsks } from './files.ts';
import { killEverything, processAsks } from './processes.ts';
import { playwrightAsks } from './playwright.ts';
import type { Telling } from './answer-stream.ts';
import { watchAsks } from './watches.ts';

/**
 * The guest: a small program inside a session's sandbox that performs the service's requests there. It lives in the session's namespaces
 * with the session's rights, so nothing it is made to do reaches further than the session.
 *
 * Its channel is descriptor 3. When that closes, everything it started ends.
 */
type Ask<Q extends Question> = (args: Args<Q>, stream: Telling<Q>, service: Channel) => Promise<void> | void;

const ping: Ask<'ping'> = (_args, stream) => stream.json({});

const asks: { [Q in Question]: Ask<Q> } = {
  ping,
  ...processAsks,
  ...fileAsks,
  ...watchAsks,
  ...playwrightAsks,
  ...driverAsks,
};

const service = channel(new Socket({ fd: 3, readable: true, writable: true }), { host: false, onOpen, most: 1024 });

function onOpen(name: string, args: unknown, stream: Stream) {
  const ask = Object.hasOwn(asks, name) ? (asks[name as Question] as Ask<never>) : undefined;
  if (!ask) return stream.fail('unknown', `The guest has no operation '${name}'.`);
  Promise.resolve()
    .then(() => ask(args as never, stream, service))
    .then(() => stream.end())
    .catch((error: NodeJS.ErrnoException) => stream.fail(error.code ?? 'internal', error.message));
}

void service.closed.then(() => {
  killEverything();
  process.exit();
});

// The session's own processes may do anything to this one; an error they cause must not end its other work.
process.on('uncaughtException', (error) => process.stderr.write(`${error.stack}\n`));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
