import { BluetoothCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-bluetooth.js';
import { DigitalCredentials } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-digital-credentials.js';
import { PermissionsCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-permissions.js';
import { UserAgentClientHintsCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-ua-client-hints.js';
import { CommandDataSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi.js';
import { anyText, object, optional, record, type Check } from '../../lib/shape.ts';
import { definitionOf, Misfit, parserOf, type Parser, type Schema } from './schema.ts';

type Params = Record<string, unknown>;

const parsers = new Map<string, Parser>();
for (const schema of [
  BluetoothCommandSchema,
  CommandDataSchema,
  DigitalCredentials.SetVirtualWalletBehaviorSchema,
  PermissionsCommandSchema,
  UserAgentClientHintsCommandSchema,
])
  addCommands(schema);
// The mapper reads the capabilities itself.
parsers.delete('session.new');

/** A schema of commands is one of a command, or of several. */
function addCommands(schema: Schema): void {
  const definition = definitionOf(schema);
  if (definition.typeName === 'ZodLazy') return addCommands(definition.getter());
  if (definition.typeName === 'ZodUnion') return definition.options.forEach(addCommands);
  const { method, params } = definition.typeName === 'ZodObject' ? definition.shape() : {};
  const name = method && definitionOf(method);
  if (!params || name?.typeName !== 'ZodLiteral') throw new TypeError('A schema of the standard is not of commands.');
  parsers.set(String(name.value), parserOf(params));
}

/** The mapper's own commands. */
const own = new Map<string, Check<object>>([
  ['goog:cdp.getSession', object({ context: anyText })],
  ['goog:cdp.resolveRealm', object({ realm: anyText })],
  ['goog:cdp.sendCommand', object({ method: anyText, params: optional(record), session: optional(anyText) })],
]);

/** The mapper takes some microseconds for each value of a script, and sends a CDP command for each list or object among them. */
const MOST_VALUES = 10_000;
const MOST_LISTS = 1000;

/** A limit of this service, not of the standard. */
class TooMany extends Misfit {
  override message(): string {
    return this.reason;
  }
}

/** The params of a command as the mapper takes them, or why they are not those of the standard. Unknown commands are left to the mapper. */
export function parseParams(method: string, params: Params): Params | Misfit {
  const fits = own.get(method);
  if (fits) return fits(params) ? params : new Misfit('are not those of this command');
  const parse = parsers.get(method);
  if (!parse) return params;
  const { coordinates, error } = params;
  if (method === 'emulation.setGeolocationOverride' && coordinates !== undefined && error !== undefined)
    return new Misfit('have coordinates and an error at the same time');
  // The mapper prefers the ids of subscriptions to the names of events.
  const byId = method === 'session.unsubscribe' && params['subscriptions'] !== undefined;
  const parsed = parse(byId ? { subscriptions: params['subscriptions'] } : params, 0);
  if (parsed instanceof Misfit) return parsed;
  if (method === 'script.callFunction' && hasTooMany(parsed))
    return new TooMany(
      `script.callFunction takes at most ${MOST_VALUES} values, and ${MOST_LISTS} lists and objects among them. Send fewer, or one string of JSON.`,
    );
  // These have members of the mapper's own, which are not in the schemas.
  if (method === 'browser.createUserContext') return params;
  if (method === 'permissions.setPermission') return { ...params, ...(parsed as Params) };
  return parsed as Params;
}

/** Whether the values of a script are too many for the mapper. */
function hasTooMany(params: unknown): boolean {
  let values = 0;
  let lists = 0;
  const left = [params];
  while (left.length > 0) {
    const next = left.pop();
    if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (record(next)) {
      values += 1;
      if (Array.isArray(next['value'])) lists += 1;
      if (values > MOST_VALUES || lists > MOST_LISTS) return true;
      for (const name in next) left.push(next[name]);
    }
  }
  return false;
}
