import { record } from '../../lib/shape.ts';

/** The mapper takes some microseconds for each value of a script, and sends a CDP command for each list or object among them. */
const MOST_VALUES = 10_000;
const MOST_LISTS = 1000;
/** The mapper splits a key into graphemes and copies the whole key for each: 64 KiB took 4 GB. The longest emoji have some thirty characters. */
const LONGEST_KEY = 64;
/** The mapper goes through all sources of input for each action. */
const MOST_SOURCES = 100;
/** The mapper sends a CDP command for each node and each handle. */
const MOST_NODES = 1000;
/** The ids that the mapper gives to nodes, and those that it had in old versions. */
const SHARED_ID = /^(?:f\.[^.]{0,64}\.d\.[^.]{0,64}\.e\.\d{1,16}|[^_.]{1,64}_element_\d{1,16})$/;
/** The longest name of a host. Punycode takes quadratic time: a host of 10,000 Chinese characters took 1.4 s. */
const LONGEST_HOST = 253;
/** The mapper compares each name of a header by the rules of a locale: 20,000 took 0.7 s. */
const MOST_HEADERS = 1000;

type Params = Record<string, unknown>;

const HEADED: ReadonlySet<string> = new Set([
  'network.continueRequest',
  'network.continueResponse',
  'network.provideResponse',
]);

/** Why params of the standard are more than the mapper can take, as a sentence for the client. */
export function excessOf(method: string, params: Params): string | undefined {
  const { handles, headers } = params;
  if (nodesIn(params) > MOST_NODES || (Array.isArray(handles) && handles.length > MOST_NODES))
    return `${method} takes at most ${MOST_NODES} nodes or handles.`;
  if (hosts(method, params).some((host) => host !== undefined && host.length > LONGEST_HOST))
    return `${method}: the host in an address or pattern has at most ${LONGEST_HOST} characters.`;
  if (method === 'script.callFunction' && hasTooMany(params))
    return `script.callFunction takes at most ${MOST_VALUES} values, and ${MOST_LISTS} lists and objects among them. Send fewer, or one string of JSON.`;
  if (method === 'input.performActions') return excessOfActions(params);
  if (HEADED.has(method) && Array.isArray(headers) && headers.length > MOST_HEADERS)
    return `${method} takes at most ${MOST_HEADERS} headers.`;
  return undefined;
}

function excessOfActions({ actions: sources }: Params): string | undefined {
  if (!Array.isArray(sources)) return undefined;
  if (sources.length > MOST_SOURCES)
    return `input.performActions takes at most ${MOST_SOURCES} sources of input. Send several commands.`;
  const isLong = (action: unknown) =>
    record(action) && typeof action['value'] === 'string' && action['value'].length > LONGEST_KEY;
  const keys = sources.flatMap((source) =>
    record(source) && Array.isArray(source['actions']) ? source['actions'] : [],
  );
  if (keys.some(isLong)) return `input.performActions: the value of a key has at most ${LONGEST_KEY} characters.`;
  return undefined;
}

/** The hosts that the mapper parses. */
function hosts(method: string, { url, urlPatterns }: Params): (string | undefined)[] {
  if (method === 'network.addIntercept' && Array.isArray(urlPatterns))
    return urlPatterns.filter(record).flatMap(({ pattern, hostname }) => [hostIn(pattern), asText(hostname)]);
  return method === 'browsingContext.navigate' || method === 'network.continueRequest' ? [hostIn(url)] : [];
}

const asText = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** The host of an address with what precedes it, or more: other signs may end it earlier. Other schemes have hosts that are not parsed. */
function hostIn(address: unknown): string | undefined {
  if (typeof address !== 'string') return undefined;
  // Parsers leave out these characters, and those of patterns leave out backslashes.
  const text = address.replace(/[\t\n\r\\]/g, '');
  const [start] = /^[\0-\u0020]*(?:https?|wss?|ftp|file):\/*/i.exec(text) ?? [];
  if (start === undefined) return undefined;
  const rest = text.slice(start.length);
  const end = rest.search(/[/?#]/);
  return end === -1 ? rest : rest.slice(0, end);
}

/** Whether the values of a script are too many for the mapper. */
function hasTooMany(params: unknown): boolean {
  let values = 0;
  let lists = 0;
  for (const value of recordsIn(params)) {
    values += 1;
    if (Array.isArray(value['value'])) lists += 1;
    if (values > MOST_VALUES || lists > MOST_LISTS) return true;
  }
  return false;
}

function nodesIn(params: Params): number {
  let nodes = 0;
  for (const { sharedId } of recordsIn(params)) if (sharedId !== undefined) nodes += 1;
  return nodes;
}

/** Replaces the ids that no node has, in place: the mapper's patterns take quadratic time for them. It finds no node for the other id. */
export function replaceOddIds(params: Params): void {
  for (const each of recordsIn(params)) {
    const { sharedId } = each;
    if (typeof sharedId === 'string' && !SHARED_ID.test(sharedId)) each['sharedId'] = 'none';
  }
}

/** An event of a response without the last of very many headers. */
export function withFewHeaders(params: Params): Params {
  const { response } = params;
  if (!record(response) || !record(response['headers'])) return params;
  const headers = Object.entries(response['headers']);
  if (headers.length <= MOST_HEADERS) return params;
  return { ...params, response: { ...response, headers: Object.fromEntries(headers.slice(0, MOST_HEADERS)) } };
}

/** All objects in a value. No recursion: the client determines the depth. */
function* recordsIn(value: unknown): Generator<Params> {
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (record(next)) {
      yield next;
      for (const name in next) left.push(next[name]);
    }
  }
}
