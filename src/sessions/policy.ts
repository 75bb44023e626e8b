import { errors } from '../errors.ts';

const mostBytes = 5 * 1024 * 1024;

/**
 * Policies that would take control of the session away from the service: loading of extensions, routing of traffic, and debugging. Only
 * the browser reads a policy file, so nothing else in it can reach beyond the session.
 */
const refused = [
  /^Extension/i,
  /^Proxy/i,
  /^RemoteDebugging/i,
  /^RemoteAccessHost/i,
  /^DeveloperTools/i,
  /^Headless/i,
  /^(UserDataDir|DiskCacheDir|DefaultDownloadDirectory|DownloadDirectory)$/i,
  /^(DnsOverHttps|BuiltInDnsClient)/i,
  /^NativeMessaging/i,
];

/** The one policy of a request, under either of its two names. */
export function policyOf(request: {
  engine_policy?: Record<string, unknown>;
  chrome_policy?: Record<string, unknown>;
}) {
  const { engine_policy, chrome_policy } = request;
  if (engine_policy && chrome_policy && JSON.stringify(engine_policy) !== JSON.stringify(chrome_policy)) {
    throw errors.invalid_input({
      detail: 'engine_policy and chrome_policy are two names of one field; they must not differ. Send one.',
    });
  }
  const policy = engine_policy ?? chrome_policy;
  if (!policy || Object.keys(policy).length === 0) return undefined;
  const field = engine_policy ? 'engine_policy' : 'chrome_policy';
  for (const name of Object.keys(policy)) {
    if (refused.some((pattern) => pattern.test(name))) {
      throw errors.invalid_input({
        detail: `${field}.${name} is not taken: extensions, proxies and debugging are the service's to set.`,
      });
    }
  }
  if (Buffer.byteLength(JSON.stringify(policy)) > mostBytes) {
    throw errors.invalid_input({ detail: `${field} must have at most ${mostBytes} bytes of JSON.` });
  }
  return policy;
}
