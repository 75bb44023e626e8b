import { BluetoothCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-bluetooth.js';
import { DigitalCredentials } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-digital-credentials.js';
import { PermissionsCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-permissions.js';
import { UserAgentClientHintsCommandSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi-ua-client-hints.js';
import { CommandDataSchema } from 'chromium-bidi/out/Default/gen/src/protocol-parser/generated/webdriver-bidi.js';
import { anyText, object, optional, record, type Check } from '../../lib/shape.ts';
import { excessOf } from './bounds.ts';
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
  const excess = excessOf(method, method === 'browser.createUserContext' ? params : (parsed as Params));
  if (excess !== undefined) return new TooMany(excess);
  // These have members of the mapper's own, which are not in the schemas.
  if (method === 'browser.createUserContext') return params;
  if (method === 'permissions.setPermission') return { ...params, ...(parsed as Params) };
  return withoutRepeats(parsed as Params);
}

/** The mapper does its work again for each repetition of a context: 99,000 of them took 0.3 s, and 0.6 s in a browser with 50 tabs. */
function withoutRepeats(params: Params): Params {
  for (const name of ['contexts', 'userContexts']) {
    const list = params[name];
    if (Array.isArray(list)) params[name] = [...new Set(list)];
  }
  return params;
}
