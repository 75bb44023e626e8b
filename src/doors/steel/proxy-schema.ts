import { validatorCompiler } from '../../api/validation.ts';
import { errors } from '../../errors.ts';
import { urlOf } from '../../lib/urls.ts';
import { CreateProxy } from '../../proxies/schema.ts';
import type { CreateBody } from './schema.ts';

const validateProxy = validatorCompiler()({ schema: CreateProxy, httpPart: 'body', method: '', url: '' });

/** `proxyUrl` goes before `useProxy`, as there. What `useProxy` asks the other service for comes from the operator's residential upstream. */
export function proxyOf({ proxyUrl, useProxy }: CreateBody): CreateProxy | undefined {
  if (proxyUrl !== undefined) return checked('proxyUrl', customProxy('proxyUrl', proxyUrl));
  if (useProxy === undefined || useProxy === null || useProxy === false) return undefined;
  if (useProxy === true) return { type: 'residential', config: {} };
  const { server, geolocation, ...rest } = (typeof useProxy === 'object' ? useProxy : { '': useProxy }) as Record<
    string,
    unknown
  >;
  if (Object.keys(rest).length > 0 || (server === undefined) === (geolocation === undefined))
    throw refuse('useProxy must be true, false, or an object with either geolocation or server.');
  if (server !== undefined) return checked('useProxy.server', customProxy('useProxy.server', server));
  const { city, ...place } = (typeof geolocation === 'object' ? geolocation : {}) as Record<string, unknown>;
  if (typeof place['country'] !== 'string') throw refuse('useProxy.geolocation.country is missing.');
  const other = Object.keys(place).find((name) => !['country', 'state'].includes(name));
  if (other !== undefined) throw refuse('useProxy.geolocation has country, state and city, and nothing else.');
  // Cities are written NEW_YORK there, and newyork here.
  const town = typeof city === 'string' ? city.toLowerCase().replace(/[_ ]/g, '') : city;
  const config = { ...place, ...(town === undefined ? {} : { city: town }) };
  return checked('useProxy.geolocation', { type: 'residential', config });
}

const ports: Record<string, number> = { 'http:': 80, 'https:': 443, 'socks5:': 1080 };

/** No refusal repeats the address: it may have a password. */
function customProxy(field: string, address: unknown): Record<string, unknown> {
  const url = typeof address === 'string' ? urlOf(address) : undefined;
  const port = url && ports[url.protocol];
  if (!url || port === undefined || url.hostname === '')
    throw refuse(
      `${field} must be an address such as http://username:password@hostname:port; https and socks5 do too.`,
    );
  const [username, password] = [url.username, url.password].map(decoded);
  return {
    type: 'custom',
    protocol: url.protocol.slice(0, -1),
    config: {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? port : Number(url.port),
      ...(username ? { username } : {}),
      ...(password ? { password } : {}),
    },
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function checked(field: string, proxy: Record<string, unknown>): CreateProxy {
  const { error } = validateProxy(proxy) as { error?: Error };
  if (error) throw refuse(`${field}: ${error.message.replace(/^config\./, '')}`);
  return proxy as CreateProxy;
}

const refuse = (detail: string) => errors.invalid_input({ detail });
