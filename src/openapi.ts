import { mkdir, writeFile } from 'node:fs/promises';
import { readIfThere } from './lib/files.ts';
import { httpServer } from './api/server.ts';
import { statusRoutes } from './api/status.ts';
import { describeErrors } from './errors.ts';
import { openLogger } from './logger.ts';
import { extensionRoutes } from './extensions/routes.ts';
import { orgRoutes } from './org/routes.ts';
import { poolRoutes } from './pools/routes.ts';
import { profileRoutes } from './profiles/routes.ts';
import { fsRoutes } from './sessions/fs/routes.ts';
import { playwrightRoutes } from './sessions/playwright/routes.ts';
import { processRoutes } from './sessions/process/routes.ts';
import { proxyRoutes } from './proxies/routes.ts';
import { computerRoutes } from './sessions/computer/routes.ts';
import { curlRoutes } from './sessions/curl/routes.ts';
import { logRoutes } from './sessions/logs/routes.ts';
import { replayRoutes } from './sessions/replays/routes.ts';
import { replayLife } from './sessions/replays/state.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { endings, sessionLife } from './sessions/state.ts';

/**
 * What is read off the code and kept in the repository, so that a review sees what a change does to the interface:
 * `npm run openapi` writes the files, `npm run check` compares them.
 */
async function emitted(): Promise<Record<string, string>> {
  // Routes only describe themselves here; no handler runs, so no room has to stand behind them.
  const nothing = new Proxy({}, { get: () => nothing }) as never;
  const app = await httpServer({
    gate: nothing,
    audit: nothing,
    logger: openLogger('silent'),
    trustProxy: [],
    elsewhere: nothing,
  });
  await app.register(statusRoutes({ probes: [], metrics: nothing, version: '' }));
  await app.register(orgRoutes(nothing));
  await app.register(sessionRoutes(nothing));
  await app.register(profileRoutes(nothing));
  await app.register(extensionRoutes(nothing));
  await app.register(processRoutes(nothing));
  await app.register(fsRoutes(nothing));
  await app.register(playwrightRoutes(nothing));
  await app.register(computerRoutes(nothing));
  await app.register(curlRoutes(nothing));
  await app.register(logRoutes(nothing));
  await app.register(replayRoutes(nothing));
  await app.register(poolRoutes(nothing));
  await app.register(proxyRoutes(nothing));
  await app.ready();
  const document = JSON.stringify(app.swagger(), null, 2);
  await app.close();
  return { 'openapi.json': `${document}\n`, 'docs/errors.md': describeErrors(), 'docs/lifecycles.md': describeLives() };
}

function describeLives(): string {
  return [
    '# Lifecycles',
    '',
    '## A session',
    '',
    '```mermaid',
    sessionLife.toMermaid(),
    '```',
    '',
    '| State | Meaning |',
    '|---|---|',
    ...Object.entries(sessionLife.states).map(([state, meaning]) => `| \`${state}\` | ${meaning} |`),
    '',
    'A session that ended says why in `ended_reason`:',
    '',
    '| Reason | Meaning |',
    '|---|---|',
    ...Object.entries(endings).map(([reason, meaning]) => `| \`${reason}\` | ${meaning} |`),
    '',
    '## A replay',
    '',
    '```mermaid',
    replayLife.toMermaid(),
    '```',
    '',
    '| State | Meaning |',
    '|---|---|',
    ...Object.entries(replayLife.states).map(([state, meaning]) => `| \`${state}\` | ${meaning} |`),
    '',
  ].join('\n');
}

const files = await emitted();
if (process.argv.includes('--check')) {
  const stale: string[] = [];
  for (const [path, text] of Object.entries(files)) if ((await readIfThere(path)) !== text.trim()) stale.push(path);
  if (stale.length > 0) {
    process.stderr.write(
      `${stale.join(', ')} ${stale.length === 1 ? 'differs' : 'differ'} from the code. Run \`npm run openapi\` and look at the change.\n`,
    );
    process.exitCode = 1;
  }
} else {
  await mkdir('docs', { recursive: true });
  for (const [path, text] of Object.entries(files)) await writeFile(path, text);
}
