import { pino, stdSerializers, type DestinationStream } from 'pino';
import { keyHeaders, keyParameters } from './lib/key-places.ts';

/** Facts on stderr, so that stdout stays for people. Everything that could contain a secret is redacted here, once. */
export function openLogger(level: string, destination?: DestinationStream) {
  return pino(
    {
      level,
      base: undefined,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          ...keyHeaders.flatMap((name) => [`["${name}"]`, `*["${name}"]`]),
          'password',
          '*.password',
          'token',
          '*.token',
          'key',
          '*.key',
          'values',
          '*.values',
        ],
        censor: '[secret]',
      },
      serializers: { error: redacted },
    },
    destination ?? process.stderr,
  );
}

/** Whether the log is written for people, by `CORRAL_LOG_FORMAT`: by default where it is a terminal. */
export function isForPeople(format: 'auto' | 'pretty' | 'json', terminal: boolean): boolean {
  return format === 'auto' ? terminal : format === 'pretty';
}

/** Takes lines of the logger and writes them for people: the time of day, the level, what happened, and the facts. */
export function prettyLines(out: { write(text: string): unknown }, colour: boolean): DestinationStream {
  const paint = (code: string, text: string) => (colour && code ? `\u001B[${code}m${text}\u001B[0m` : text);
  return {
    write(line) {
      const { level, time, msg, error, ...facts } = JSON.parse(line) as Record<string, unknown>;
      const pairs = Object.entries(facts).map(([name, value]) => `${name}=${inWords(value)}`);
      const { message, stack } = (typeof error === 'object' && error ? error : {}) as Record<string, unknown>;
      const reason = message ?? error;
      const words = [
        paint('2', new Date(String(time)).toLocaleTimeString('en-GB')),
        paint(colours[String(level)] ?? '', String(level).padEnd(5)),
        String(msg),
        ...(pairs.length > 0 ? [paint('2', pairs.join(' '))] : []),
        ...(reason === undefined ? [] : [`error=${inWords(reason)}`]),
      ];
      // The stack is for faults. For a warning, the message is enough.
      const lines = level === 'error' && typeof stack === 'string' ? [words.join('  '), stack] : [words.join('  ')];
      out.write(`${lines.join('\n')}\n`);
    },
  };
}

const colours: Record<string, string> = { warn: '33', error: '31', fatal: '31' };

const inWords = (value: unknown) =>
  typeof value === 'string' && /^[!#-<>-~]+$/.test(value) ? value : JSON.stringify(value);

/**
 * Error messages quote URLs, and URLs contain tokens and passwords. The `extras` of an error are for its client: they can have the output
 * of a command. An error of the database quotes the refused row and the statement in fields of their own. Of an error that JSON cannot
 * represent (a cycle, a BigInt), only message and stack are written.
 */
function redacted(error: unknown): unknown {
  try {
    const json = JSON.stringify(stdSerializers.err(error as Error), (name, value: unknown) =>
      quoting.has(name) ? undefined : value,
    );
    return JSON.parse(redactText(json ?? 'null'));
  } catch {
    const { message, stack = '' } = error instanceof Error ? error : { message: String(error) };
    return { message: redactText(message), stack: redactText(stack) };
  }
}

/** Fields of errors that can have data of a tenant. */
const quoting = new Set(['extras', 'detail', 'where', 'internalQuery']);

/** Besides keys, the signed tokens of a session's addresses. */
// not linear: the names are constants, and none has a repetition
const secretParameter = new RegExp(`([?&](?:${['jwt', ...keyParameters].join('|')})=)[^&\\s"\\\\]+`, 'gi');

export function redactText(text: string): string {
  return text
    .replace(/\b(sk_)[A-Za-z0-9]{8,}/g, '$1[secret]')
    .replace(secretParameter, '$1[secret]')
    .replace(/(:\/\/[^/\s:@"]*:)[^@/\s"]+@/g, '$1[secret]@');
}
