import { isIP } from 'node:net';
import type { Proxy as Endpoint } from '../chromium/egress/proxy.ts';
import type { Reached } from '../chromium/egress/proxy-check.ts';
import { EgressError } from '../chromium/egress/refusals.ts';
import { errors } from '../errors.ts';

/** Requests a URL through a proxy. */
export type Reach = (proxy: Endpoint, url: URL) => Promise<Reached>;

/** Finds the exit address of a proxy, and its latency. Throws `proxy_check_failed` with the reason. */
export async function seeExit(reach: Reach, proxy: Endpoint, url: string): Promise<{ ip: string; latencyMs: number }> {
  const { status, body, latencyMs } = await attempt(() => reach(proxy, new URL(url)));
  const ip = exitAddress(body);
  if (status !== 200 || ip === undefined) {
    throw failed('bad_answer', `${new URL(url).host} answered ${status} through the proxy, and no address was in it.`);
  }
  return { ip, latencyMs };
}

/** Checks whether a site can be reached through a proxy. */
export async function seeSite(reach: Reach, proxy: Endpoint, url: URL): Promise<{ latencyMs: number }> {
  const { status, latencyMs } = await attempt(() => reach(proxy, url));
  if (status >= 500) throw failed('bad_answer', `${url.host} answered ${status} through the proxy.`);
  return { latencyMs };
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw failed(error.code, [error.message, error.remedy].filter(Boolean).join(' '), error);
  }
}

const failed = (code: string, message: string, cause?: unknown) =>
  errors.proxy_check_failed({ detail: message }, { details: [{ code, message }], cause });

/** A plain address, or the first address among the values of a JSON object: `{"ip": …}`, `{"origin": …}`. */
function exitAddress(body: string): string | undefined {
  const text = body.trim();
  if (isIP(text) !== 0) return text;
  try {
    const values = Object.values(JSON.parse(text) as object);
    return values.find((value): value is string => typeof value === 'string' && isIP(value) !== 0);
  } catch {
    return undefined;
  }
}
