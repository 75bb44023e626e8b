import { writeFileSync } from 'node:fs';
import { loadApps } from './registry.ts';
import { say } from './say.ts';

/** Writes the apps and actions of an entry point to descriptor 3: `node list.js <entry>`. A program of its own, since it runs the app's code. */
try {
  const apps = await loadApps(process.argv[2]!);
  const names = apps.map(({ name, actions }) => ({ name, actions: actions.map((action) => ({ name: action.name })) }));
  writeFileSync(3, JSON.stringify({ apps: names }));
  process.exit(0); // the app may have left timers or sockets
} catch (error) {
  say(error);
  writeFileSync(3, JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  process.exit(1);
}
