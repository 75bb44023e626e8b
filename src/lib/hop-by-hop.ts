import { commaList } from './text.ts';

/** Headers that are valid for one connection only (RFC 9110, 7.6.1). */
export const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Further headers that are valid for one connection only: those that its `Connection` header names. */
export const namedByConnection = (value: string | string[] | undefined): ReadonlySet<string> =>
  new Set(commaList(String(value ?? '').toLowerCase()));
