import { lookup, Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { within } from '../../lib/deadline.ts';
import { EgressError } from './refusals.ts';

/**
 * All addresses of a name, from one lookup. `trusted` names are those the operator listed. Throws an `EgressError` with
 * the code `dns_failed` when there are none.
 */
export type Resolve = (name: string, options: { trusted: boolean }) => Promise<string[]>;

/**
 * The machine's resolver, used in two ways.
 *
 * `getaddrinfo` uses everything the machine knows (search domains, mDNS, …), but blocks one of libuv's two threads for slow
 * work until it has an answer: a page with a hundred names on silent servers would stop every other session.
 * So it resolves only the names the operator listed. All others are looked up in the hosts file and then by DNS without a thread.
 */
export function systemResolver({ seconds = 10, servers }: { seconds?: number; servers?: string[] } = {}): Resolve {
  return async (name, { trusted }) => {
    try {
      return await answerWithin(seconds, trusted ? everyWay(name) : hostsThenDns(name, servers));
    } catch (error) {
      const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no answer in time';
      throw new EgressError('dns_failed', `The name ${name} could not be resolved (${reason}).`, {
        remedy: trusted
          ? undefined
          : 'If only the machine of the service knows this name, list it in `CORRAL_ALLOW_PRIVATE_HOSTS`.',
        cause: error,
      });
    }
  };
}

async function everyWay(name: string): Promise<string[]> {
  return (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);
}

async function hostsThenDns(name: string, servers?: string[]): Promise<string[]> {
  const listed = inHostsFile(await readFile('/etc/hosts', 'utf8').catch(() => ''), name);
  if (listed.length > 0) return listed;
  // A new resolver for each name rereads resolv.conf, as getaddrinfo does: it keeps working when the machine changes networks.
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (servers) resolver.setServers(servers);
  const families = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const addresses = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []));
  if (addresses.length > 0) return addresses;
  throw families.find((family) => family.status === 'rejected')?.reason;
}

export function inHostsFile(text: string, name: string): string[] {
  return text.split('\n').flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return address && names.some((each) => each.toLowerCase() === name) ? [address] : [];
  });
}

const answerWithin = <T>(seconds: number, work: Promise<T>): Promise<T> =>
  within(seconds * 1000, () => new Error(`no answer within ${seconds} s`), work);
