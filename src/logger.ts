import { pino, stdSerializers, type DestinationStream } from 'pino';

/** Facts as JSON lines on stderr, so that stdout stays for people. Everything that could contain a secret is redacted here, once. */
export function openLogger(level: string, destination?: DestinationStream) {
  return pino(
    {
      level,
      base: undefined,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'authorization',
          '*.authorization',
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
      serializers: { error: (error: Error) => redactUrls(stdSerializers.err(error)) },
    },
    destination ?? process.stderr,
  );
}

/** Error messages quote URLs, and URLs contain tokens and passwords. */
function redactUrls<T extends object>(error: T): T {
  return JSON.parse(redactText(JSON.stringify(error))) as T;
}

export function redactText(text: string): string {
  return text
    .replace(/\b(sk_)[A-Za-z0-9]{8,}/g, '$1[secret]')
    .replace(/([?&](?:jwt|token)=)[^&\s"\\]+/gi, '$1[secret]')
    .replace(/(\w+:\/\/[^/\s:@"]*:)[^@/\s"]+@/g, '$1[secret]@');
}
