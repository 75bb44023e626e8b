import { errors } from '../errors.ts';
import { isLight } from '../lib/json-weight.ts';

const mostBytes = 5 * 1024 * 1024;
/** Chromium has about a thousand policies, and takes a thousand entries in its lists of URLs. */
const mostValues = 10_000;
/** What a body with a policy has at most, under both of its names, with room for the rest. */
export const mostValuesWithPolicy = 25_000;
/** What the policies of one page of a list have at most, beside that of its last row: each is parsed and written twice. */
export const mostPageOfPolicies = 128 * 1024;

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
  const json = JSON.stringify(policy);
  if (!isLight(json, mostValues))
    throw errors.invalid_input({ detail: `${field} must have at most ${mostValues} names and values.` });
  if (Buffer.byteLength(json) > mostBytes)
    throw errors.invalid_input({ detail: `${field} must have at most ${mostBytes} bytes of JSON.` });
  for (const name of Object.keys(policy)) {
    if (refused.some((pattern) => pattern.test(name))) {
      throw errors.invalid_input({
        detail: `${field}.${name} is not taken: extensions, proxies and debugging are the service's to set.`,
      });
    }
  }
  return policy;
}
