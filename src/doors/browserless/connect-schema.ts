import { parseBody } from '../../api/body.ts';
import { errors } from '../../errors.ts';
import type { CreateSession } from '../../sessions/schema.ts';

/** Options of the other service that a session has too, in its spelling. */
const known = ['headless', 'stealth', 'timeout', 'trackingId', 'launch'];
const launchKnown = ['headless', 'stealth', 'defaultViewport'];

/**
 * Reads the address of a client that was written for the other service. `mostMs` is its `timeout`: the longest time that the session
 * lasts. What a session does not have is refused by its name.
 */
export function wishOfBrowserless(search: Iterable<[string, string]>): { request: CreateSession; mostMs?: number } {
  const given = new Map(search);
  for (const name of given.keys())
    if (!known.includes(name)) throw errors.feature_not_available({ field: name.slice(0, 64) });
  const launch = launchOf(given.get('launch') ?? '');
  const headless = flag('headless', given.get('headless')) ?? launch['headless'] ?? true;
  const stealth = flag('stealth', given.get('stealth')) ?? launch['stealth'];
  const tracking = given.get('trackingId');
  if (tracking !== undefined && !/^[\w .:/=+@-]{1,256}$/.test(tracking))
    throw refuse('trackingId has at most 256 letters, digits and some signs: it becomes the tag tracking_id.');
  const viewport = viewportOf(launch['defaultViewport']);
  const timeout = given.get('timeout');
  if (timeout !== undefined && !/^[1-9]\d{2,7}$/.test(timeout))
    throw refuse('timeout must be a number of milliseconds between 100 and 99999999.');
  return {
    request: {
      headless: headless !== false && headless !== 'false',
      ...(stealth === undefined ? {} : { stealth: stealth === true }),
      ...(tracking === undefined ? {} : { tags: { tracking_id: tracking } }),
      ...(viewport ? { viewport } : {}),
    },
    ...(timeout === undefined ? {} : { mostMs: Number(timeout) }),
  };
}

/** `stealth` alone means the same as `stealth=true`. */
function flag(name: string, value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  if (value === '' || value === 'true') return true;
  if (value === 'false') return false;
  throw refuse(`${name} must be true or false.`);
}

/** JSON, or JSON in base64, as the other service takes it. */
function launchOf(text: string): Record<string, unknown> {
  if (text === '') return {};
  let read: unknown;
  try {
    read = parseBody(text.trimStart().startsWith('{') ? text : Buffer.from(text, 'base64').toString());
  } catch {
    throw refuse('launch is not JSON that can be read.');
  }
  if (typeof read !== 'object' || read === null || Array.isArray(read)) throw refuse('launch must be an object.');
  const launch = read as Record<string, unknown>;
  for (const name of Object.keys(launch))
    if (!launchKnown.includes(name)) throw errors.feature_not_available({ field: `launch.${name.slice(0, 64)}` });
  for (const name of ['headless', 'stealth'])
    if (launch[name] !== undefined && typeof launch[name] !== 'boolean')
      throw refuse(`launch.${name} must be true or false.`);
  return launch;
}

function viewportOf(given: unknown): { width: number; height: number } | undefined {
  if (given === undefined || given === null) return undefined;
  const { width, height, ...rest } = given as Record<string, unknown>;
  const fits = (side: unknown): side is number => Number.isInteger(side) && Number(side) >= 1 && Number(side) <= 8192;
  if (!fits(width) || !fits(height) || Object.keys(rest).length > 0)
    throw refuse('launch.defaultViewport has a width and a height between 1 and 8192, and nothing else.');
  return { width, height };
}

const refuse = (detail: string) => errors.invalid_input({ detail });
