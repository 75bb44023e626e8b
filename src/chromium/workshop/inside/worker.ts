import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { EnvHttpProxyAgent, setGlobalDispatcher } from 'undici';
import { loadApps, type Listed } from './registry.ts';
import { say } from './say.ts';

/**
 * Runs actions of one deployment, one at a time. It reads what to do on descriptor 3 and reports on descriptor 4, a line of JSON each;
 * the output of the app is sent to the service as its log. The environment comes first on descriptor 3, because a command line can be read by
 * other users of the machine.
 */
type Order =
  | { start: { env: Record<string, string>; entry: string } }
  | { run: { id: string; app: string; action: string; payload: string | null } };

const mostOutput = 4.5 * 2 ** 20;
const out = new Socket({ fd: 4, readable: false, writable: true });
out.on('error', () => process.exit(1)); // the service has exited
const report = (said: object) => void out.write(`${JSON.stringify(said)}\n`);

let apps: Listed[] = [];
const orders = createInterface({ input: new Socket({ fd: 3, readable: true, writable: false }), crlfDelay: Infinity });
orders.on('close', () => process.exit(0));
orders.on('line', (line) => {
  const order = JSON.parse(line) as Order;
  if ('start' in order) void start(order.start);
  else void run(order.run);
});

async function start({ env, entry }: { env: Record<string, string>; entry: string }) {
  Object.assign(process.env, env);
  setGlobalDispatcher(new EnvHttpProxyAgent());
  try {
    apps = await loadApps(entry);
    report({ ready: true });
  } catch (error) {
    say(error);
    report({ broken: messageOf(error) });
  }
}

async function run({ id, app, action, payload }: { id: string; app: string; action: string; payload: string | null }) {
  try {
    const handler = apps.find(({ name }) => name === app)?.actions.find(({ name }) => name === action)?.handler;
    if (!handler) throw new Error(`App '${app}' has no action '${action}' any more.`);
    const result = await handler({ invocation_id: id }, payload === null ? undefined : JSON.parse(payload));
    const output = JSON.stringify(result) as string | undefined;
    if (output !== undefined && Buffer.byteLength(output) > mostOutput)
      throw new Error('The output has more than 4.5 MiB as JSON. Return less, such as a link to the data.');
    report({ done: id, output: output ?? null });
  } catch (error) {
    say(error);
    report({ failed: id, message: messageOf(error) });
  } finally {
    process.stderr.write(`${endOf(id)}\n`); // the service has all lines of this action when it has read this one
  }
}

const endOf = (id: string) => `\u0001end of ${id}`;

function messageOf(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 4000);
}
