import { WebSocket } from 'ws';
import { addressOf, askJson, type Target } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { exit, Fault } from '../fault.ts';
import { word, type Call } from '../table.ts';

/** Starts a shell on a terminal inside the session and attaches to it. When this process goes away, so does the shell. */
export async function shell(call: Call): Promise<void> {
  const [command = 'bash', ...args] = (call.arguments[1] as string[] | undefined) ?? [];
  const id = word(call, 0);
  const target = call.target();
  // stdout has no size if it is not a terminal.
  const { rows, columns } = process.stdout as Partial<typeof process.stdout>;
  const term = process.env['TERM'] || 'xterm-256color';
  const body = {
    command,
    args,
    allocate_tty: true,
    rows: rows ?? 24,
    cols: columns ?? 80,
    env: { TERM: term },
    as_root: call.options['as-root'],
  };
  const path = fillPath('/browsers/{id}/process/spawn', [id]);
  const { process_id } = await askJson<{ process_id: string }>(target, { method: 'POST', path, body });
  const code = await onTerminal(target, id, process_id);
  if (code === undefined) {
    // The connection or this terminal went away first: nothing is left running in the session.
    const kill = fillPath('/browsers/{id}/process/{process_id}/kill', [id, process_id]);
    await askJson(target, { method: 'POST', path: kill, body: { signal: 'KILL' } }).catch(() => {});
    throw new Fault('The connection to the session was lost.', exit.unreachable);
  }
  if (call.output.format !== 'table') call.output.done('', { process_id, exit_code: code });
  process.exitCode = code;
}

export async function attach(call: Call): Promise<void> {
  const code = await onTerminal(call.target(), word(call, 0), word(call, 1));
  if (code === undefined) throw new Fault('The connection to the session was lost.', exit.unreachable);
  if (call.output.format !== 'table') call.output.done('', { process_id: word(call, 1), exit_code: code });
  process.exitCode = code;
}

/**
 * This terminal and one inside a session, connected until the program there ends; resolves to its exit code, or to undefined when the
 * connection ends first. Keys go there as they are: Ctrl-C interrupts the program in the session, not this one.
 */
async function onTerminal(target: Target, id: string, processId: string): Promise<number | undefined> {
  const url = addressOf(target, fillPath('/browsers/{id}/process/{process_id}/attach', [id, processId]));
  url.protocol = url.protocol.replace('http', 'ws');
  const headers = {
    authorization: `Bearer ${target.key}`,
    ...(target.project ? { 'x-kernel-project': target.project } : {}),
  };
  const socket = new WebSocket(url, { headers });
  const { stdin, stdout } = process;
  let code: number | undefined;
  const size = () => {
    const { rows, columns } = stdout;
    if (rows && columns) socket.send(JSON.stringify({ type: 'resize', rows, cols: columns }));
  };
  const type = (bytes: Buffer) => socket.send(bytes, { binary: true });
  const hangUp = () => socket.close();
  // The end of a file or a pipe at stdin is sent as Ctrl-D.
  const typeEnd = () => socket.readyState === WebSocket.OPEN && type(Buffer.from([4]));

  const restore = () => {
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.off('data', type).off('end', typeEnd).pause();
    stdout.off('resize', size);
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.off(signal, hangUp);
  };
  return new Promise((resolve, reject) => {
    socket.on('open', () => {
      size();
      if (stdin.isTTY) stdin.setRawMode(true);
      stdin.on('data', type).on('end', typeEnd).resume();
      stdout.on('resize', size);
      for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, hangUp);
    });
    socket.on('message', (data: Buffer, binary) => {
      if (binary) {
        // A terminal that does not keep up holds the program back.
        if (!stdout.write(data)) {
          socket.pause();
          stdout.once('drain', () => socket.resume());
        }
        return;
      }
      const message = JSON.parse(data.toString()) as { type: string; exitCode?: number; message?: string };
      if (message.type === 'exit') code = message.exitCode ?? 1;
      if (message.type === 'error') process.stderr.write(`${message.message}\r\n`);
    });
    socket.on('unexpected-response', (_request, answer) => {
      reject(new Fault(`The service refused the terminal with status ${answer.statusCode}.`));
      answer.destroy();
    });
    socket.on('error', (error) => {
      restore();
      reject(new Fault(`The terminal cannot be reached: ${error.message}`, exit.unreachable));
    });
    socket.on('close', () => {
      restore();
      resolve(code);
    });
  });
}
