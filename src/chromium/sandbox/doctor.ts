import { spawn } from 'node:child_process';
import { getPriority, homedir, setPriority } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

/** What one look at the machine found: the same as `corral doctor -o json`. */
interface Diagnosis {
  readonly checkedAt: Date;
  readonly findings: readonly Finding[];
  /** What to do about the findings that are not well. */
  readonly mends: readonly string[];
  /** The reason if there are no findings. */
  readonly failure: string | undefined;
}

interface Finding {
  readonly name: string;
  readonly well: boolean;
  readonly saw: string;
  /** For a failed check: whether browsers can run without it, and the features that are disabled. */
  readonly required?: boolean;
  readonly switched_off?: string;
}

const SCRIPT = join(import.meta.dirname, '../../../scripts/doctor.mjs');
/** A look takes seconds of a processor. What it finds changes by a person's work on the machine. */
const FRESH_MS = 30_000;
/** For what may never end: a busy machine takes long to start twenty programs. */
const MOST_MS = 120_000;
const MOST_BYTES = 1_000_000;
/** Its priority, as `nice` counts: after what sessions do. */
const BEHIND = 10;

/**
 * Looks at the machine, one look at a time. It runs in a process of its own, since it waits for each program that it starts, and behind
 * what sessions do. A caller shares a look that is fresh or under way.
 */
export function doctor({
  dataDir,
  allowUnsandboxed,
  chromium = '',
  headlessShell = '',
  script = SCRIPT,
  now = () => performance.now(),
}: {
  dataDir: string;
  allowUnsandboxed: boolean;
  /** Paths of the browsers, when not where distributions install them. */
  chromium?: string;
  headlessShell?: string;
  script?: string;
  now?: () => number;
}) {
  const closing = new AbortController();
  let last: { at: number; diagnosis: Diagnosis } | undefined;
  let underway: Promise<Diagnosis> | undefined;

  async function look(): Promise<Diagnosis> {
    const env = {
      PATH: [dirname(process.execPath), '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(delimiter),
      HOME: homedir(),
      CORRAL_DATA_DIR: dataDir,
      CORRAL_ALLOW_UNSANDBOXED: String(allowUnsandboxed),
      CORRAL_CHROMIUM: chromium,
      CORRAL_HEADLESS_SHELL: headlessShell,
    };
    const checkedAt = new Date();
    const none = { checkedAt, findings: [], mends: [] };
    const diagnosis = await outputOf(script, env, closing.signal).then(
      (text): Diagnosis => ({
        ...none,
        ...(JSON.parse(text) as Pick<Diagnosis, 'findings' | 'mends'>),
        failure: undefined,
      }),
      (error: Error): Diagnosis => ({ ...none, failure: error.message }),
    );
    last = { at: now(), diagnosis };
    return diagnosis;
  }

  return {
    async diagnose(): Promise<Diagnosis> {
      if (last && now() - last.at < FRESH_MS) return last.diagnosis;
      return (underway ??= look().finally(() => (underway = undefined)));
    },

    async close(): Promise<void> {
      closing.abort();
      await underway;
    },
  };
}

/** What the script prints. It exits with 1 where something that is required is missing, which is an answer too. */
function outputOf(script: string, env: NodeJS.ProcessEnv, over: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    if (over.aborted) return reject(new Error('The service is being stopped.'));
    // In a separate process group, so that its children end with it.
    const child = spawn(process.execPath, [script, '--json'], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const stop = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
    const late = setTimeout(stop, MOST_MS);
    over.addEventListener('abort', stop, { once: true });
    if (child.pid !== undefined && getPriority(child.pid) < BEHIND) setPriority(child.pid, BEHIND); // only root may raise it
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      if ((text += part).length > MOST_BYTES) stop();
    });
    child.on('error', reject); // 'close' comes after it
    child.on('close', (code, signal) => {
      clearTimeout(late);
      over.removeEventListener('abort', stop);
      const end = signal ? `was ended by ${signal}` : `exited with ${code}`;
      if (isObject(text)) resolve(text);
      else reject(new Error(`The look at the machine ${end} and said nothing. Run \`npx corral doctor\` there.`));
    });
  });
}

function isObject(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}
