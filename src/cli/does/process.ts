import { ask, askJson, eventsOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { readText } from '../fields.ts';
import { word, type Call } from '../table.ts';

interface Executed {
  exit_code: number;
  stdout_b64?: string;
  stderr_b64?: string;
}

export async function exec(call: Call): Promise<void> {
  const answer = await start<Executed>(call, 'exec');
  if (call.output.format === 'table') {
    process.stdout.write(Buffer.from(answer.stdout_b64 ?? '', 'base64'));
    process.stderr.write(Buffer.from(answer.stderr_b64 ?? '', 'base64'));
  } else call.output.one(answer);
  process.exitCode = answer.exit_code;
}

export async function spawn(call: Call): Promise<void> {
  const answer = await start<{ process_id: string }>(call, 'spawn');
  call.output.done(answer.process_id, answer);
}

function start<T>(call: Call, how: string): Promise<T> {
  const [command, ...args] = call.arguments[1] as string[];
  const path = fillPath(`/browsers/{id}/process/${how}`, [word(call, 0)]);
  return askJson<T>(call.target(), { method: 'POST', path, body: { ...call.body, command, args } });
}

interface Piece {
  stream?: 'stdout' | 'stderr';
  data_b64?: string;
  event?: string;
  exit_code?: number;
}

export async function output(call: Call): Promise<void> {
  const path = fillPath('/browsers/{id}/process/{process_id}/stdout/stream', [word(call, 0), word(call, 1)]);
  for await (const piece of eventsOf<Piece>(await ask(call.target(), { method: 'GET', path }))) {
    if (call.output.format !== 'table') call.output.event(piece, undefined);
    else if (piece.data_b64 !== undefined)
      (piece.stream === 'stderr' ? process.stderr : process.stdout).write(Buffer.from(piece.data_b64, 'base64'));
    if (piece.event === 'exit') process.exitCode = piece.exit_code ?? 1;
  }
}

export async function write(call: Call): Promise<void> {
  const text = (call.arguments[2] as string | undefined) ?? readText('-', 'stdin');
  const path = fillPath('/browsers/{id}/process/{process_id}/stdin', [word(call, 0), word(call, 1)]);
  const body = { ...call.body, data_b64: Buffer.from(text).toString('base64') };
  const answer = await askJson<{ written_bytes: number }>(call.target(), { method: 'POST', path, body });
  call.output.done(`Wrote ${answer.written_bytes} bytes.`, answer);
}
