import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** An action's handler, as the SDK keeps it. */
type Handler = (context: { invocation_id: string }, payload: unknown) => unknown;

interface Registry {
  getApps(): { name: string; getActions(): { name: string; handler: Handler }[] }[];
}

export interface Listed {
  name: string;
  actions: { name: string; handler: Handler }[];
}

/**
 * Runs the entry point and reads the apps that it has registered with the SDK. The SDK keeps a registry of its own for code that
 * imports it and for code that requires it; an app may use either.
 */
export async function loadApps(entry: string): Promise<Listed[]> {
  await import(pathToFileURL(entry).href);
  const require = createRequire(entry);
  let root: string;
  try {
    root = dirname(require.resolve('@onkernel/sdk'));
  } catch {
    throw new Error("The entry point cannot load '@onkernel/sdk'. Add it to the dependencies in package.json.");
  }
  const found = new Map<string, Listed>();
  const read = ({ appRegistry }: { appRegistry?: Registry }) => {
    for (const app of appRegistry?.getApps() ?? []) {
      const known = found.get(app.name) ?? { name: app.name, actions: [] };
      known.actions.push(...app.getActions());
      found.set(app.name, known);
    }
  };
  const [imported, required] = ['core/app-framework.mjs', 'core/app-framework.js'].map((name) => join(root, name));
  if (existsSync(imported!)) read((await import(pathToFileURL(imported!).href)) as object);
  if (existsSync(required!)) read(require(required!) as object);
  return [...found.values()];
}
