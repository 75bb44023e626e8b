import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askJson } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { UsageError } from '../fault.ts';
import type { Call } from '../table.ts';

interface Session {
  session_id: string;
  cdp_ws_url: string;
  browser_live_view_url?: string | null;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The script runs in a process of its own, so that this one outlives it: however the script ends, the session is ended. The child ends
 * when this process is killed, and the session then by its timeout.
 */
export async function runScript(call: Call): Promise<void> {
  const [script, words = []] = call.arguments as [string, string[] | undefined];
  const file = resolve(script);
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  const target = call.target();
  const heard: NodeJS.Signals[] = [];
  const hear = (signal: NodeJS.Signals) => void heard.push(signal);
  for (const signal of signals) process.on(signal, hear);
  const session = await askJson<Session>(target, { method: 'POST', path: '/browsers', body: call.body });
  try {
    call.output.note(`Session ${session.session_id}`);
    // Includes a signal that arrived while the session was created.
    const code = heard.length > 0 ? 130 : await runChild(file, words, session, target, heard);
    process.exitCode = code;
    if (call.output.format !== 'table')
      call.output.done('', { session_id: session.session_id, exit_code: code, kept: call.options['keep'] === true });
  } finally {
    const path = fillPath('/browsers/{id}', [session.session_id]);
    if (!call.options['keep']) await askJson(target, { method: 'DELETE', path }).catch(() => {}); // it may have ended
    for (const signal of signals) process.off(signal, hear);
  }
}

function runChild(
  file: string,
  words: readonly string[],
  session: Session,
  target: { url: string; key: string },
  heard: readonly NodeJS.Signals[],
): Promise<number> {
  const program = fileURLToPath(new URL('./script-child.js', import.meta.url));
  const child = spawn(process.execPath, ['--enable-source-maps', program, file, ...words], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: {
      ...process.env,
      CORRAL_SESSION_ID: session.session_id,
      CORRAL_CDP_URL: session.cdp_ws_url,
      CORRAL_SESSION: JSON.stringify(session),
      KERNEL_BASE_URL: target.url,
      KERNEL_API_KEY: target.key,
    },
  });
  // A terminal sends Ctrl-C to both processes; what else ends this one is passed on.
  const forward = (signal: NodeJS.Signals) => child.kill(signal);
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, forward);
  return new Promise((done, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      for (const one of ['SIGTERM', 'SIGHUP'] as const) process.off(one, forward);
      done(code ?? (signal === 'SIGINT' || heard.length > 0 ? 130 : 1));
    });
  });
}
