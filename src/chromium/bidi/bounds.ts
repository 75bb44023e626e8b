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
/** The mapper splits the names of all subscriptions at their dots, for each event: four of 4 MB took 0.4 s. */
const LONGEST_NAME = 256;
/** Of the characters and members of a setting. The mapper keeps it, and writes a command with it for each tab at once: 4 MB for 50 tabs took a second. */
const MOST_OF_SETTING = 64 * 1024;
/** Written for each context of the browser, of which there may be a thousand. */
const LONGEST_PATH = 4096;
/** The mapper goes through the characters of patterns one by one: 4 MB took 0.9 s. */
const LONGEST_PATTERN = 64 * 1024;

type Params = Record<string, unknown>;

const HEADED: ReadonlySet<string> = new Set([
  'network.continueRequest',
  'network.continueResponse',
  'network.provideResponse',
  'network.setExtraHeaders',
]);
const SUBSCRIBING: ReadonlySet<string> = new Set(['session.subscribe', 'session.unsubscribe']);
/** Of tabs, frames or contexts, and those in the future. All methods of `emulation` are too. */
const SETTINGS: ReadonlySet<string> = new Set([
  'browser.createUserContext',
  'browser.setDownloadBehavior',
  'browsingContext.setViewport',
  'digitalCredentials.setVirtualWalletBehavior',
  'network.setExtraHeaders',
  'userAgentClientHints.setClientHintsOverride',
]);

/** Why params of the standard are more than the mapper can take, as a sentence for the client. */
export function excessOf(method: string, params: Params): string | undefined {
  const { handles, headers } = params;
  if (nodesIn(params) > MOST_NODES || (Array.isArray(handles) && handles.length > MOST_NODES))
    return `${method} takes at most ${MOST_NODES} nodes or handles.`;
  if (hosts(method, params).some((host) => host !== undefined && host.length > LONGEST_HOST))
    return `${method}: the host in an address or pattern has at most ${LONGEST_HOST} characters.`;
  if (patterns(method, params).some((text) => text.length > LONGEST_PATTERN))
    return `${method}: each part of a pattern has at most ${LONGEST_PATTERN} characters.`;
  if (method === 'script.callFunction' && hasTooMany(params))
    return `script.callFunction takes at most ${MOST_VALUES} values, and ${MOST_LISTS} lists and objects among them. Send fewer, or one string of JSON.`;
  if (method === 'input.performActions') return excessOfActions(params);
  if (HEADED.has(method) && Array.isArray(headers) && headers.length > MOST_HEADERS)
    return `${method} takes at most ${MOST_HEADERS} headers.`;
  if (SUBSCRIBING.has(method)) return excessOfNames(method, params);
  if (SETTINGS.has(method) || method.startsWith('emulation.')) return excessOfSetting(method, params);
  return undefined;
}

function excessOfNames(method: string, { events }: Params): string | undefined {
  const isLong = (event: unknown) => typeof event === 'string' && event.length > LONGEST_NAME;
  if (!Array.isArray(events) || !events.some(isLong)) return undefined;
  return `${method}: the name of an event has at most ${LONGEST_NAME} characters.`;
}

function excessOfSetting(method: string, params: Params): string | undefined {
  const setting = { ...params, contexts: undefined, userContexts: undefined };
  if (sizeOf(setting) > MOST_OF_SETTING)
    return `${method} takes at most ${MOST_OF_SETTING} characters and members in all.`;
  const { downloadBehavior } = params;
  const path = record(downloadBehavior) ? asText(downloadBehavior['destinationFolder']) : undefined;
  if (path !== undefined && path.length > LONGEST_PATH)
    return `${method} takes a destinationFolder of at most ${LONGEST_PATH} characters.`;
  return undefined;
}

/** The characters of a value and its members. No recursion: the client determines the depth. */
function sizeOf(value: unknown): number {
  let size = 0;
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    size += 1;
    if (typeof next === 'string') size += next.length;
    else if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (record(next)) for (const name in next) left.push(name, next[name]);
  }
  return size;
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

/** The parts of patterns, which the mapper reads character by character. */
function patterns(method: string, { urlPatterns }: Params): string[] {
  if (method !== 'network.addIntercept' || !Array.isArray(urlPatterns)) return [];
  return urlPatterns
    .filter(record)
    .flatMap((pattern) => Object.values(pattern).filter((part) => typeof part === 'string'));
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

/** The params of an event of a request without the last of very many headers, wherever they are in it. */
export function withFewHeaders(params: Params): Params {
  const shorter = withFew(params);
  for (const name of ['request', 'response', 'redirectResponse']) {
    const part = shorter[name];
    if (record(part) && hasMany(part['headers'])) return withFewHeaders({ ...shorter, [name]: withFew(part) });
  }
  return shorter;
}

function withFew(part: Params): Params {
  const { headers } = part;
  if (!hasMany(headers)) return part;
  return { ...part, headers: Object.fromEntries(Object.entries(headers).slice(0, MOST_HEADERS)) };
}

const hasMany = (headers: unknown): headers is Params => record(headers) && Object.keys(headers).length > MOST_HEADERS;

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
