import { mkdir, writeFile } from 'node:fs/promises';
import { readIfThere } from './lib/files.ts';
import { describeSettings } from './config.ts';
import { describeErrors } from './errors.ts';
import { referenceServer } from './reference.ts';
import { replayEndings, replayLife } from './sessions/replays/state.ts';
import { endings, sessionLife } from './sessions/state.ts';
import { deploymentLife, invocationLife } from './deployments/state.ts';
import { connectionLife, loginLife } from './logins/state.ts';

/**
 * Files that are generated from the code and kept in the repository, so that a review sees how a change affects the
 * interface: `npm run openapi` writes them, `npm run check` compares them.
 */
async function emitted(): Promise<Record<string, string>> {
  const { app, routes } = await referenceServer();
  for (const route of routes) await app.register(route);
  await app.ready();
  const document = JSON.stringify(app.swagger(), null, 2);
  await app.close();
  return {
    'openapi.json': `${document}\n`,
    'docs/errors.md': describeErrors(),
    'docs/lifecycles.md': describeLives(),
    'docs/settings.md': describeSettings(),
  };
}

function describeLives(): string {
  return [
    '# Lifecycles',
    '',
    ...describeLife('A session', sessionLife),
    'The `ended_reason` of a session:',
    '',
    ...table('Reason', endings),
    ...describeLife('A replay', replayLife),
    'The `ended_reason` of a replay:',
    '',
    ...table('Reason', replayEndings),
    ...describeLife('A deployment', deploymentLife),
    ...describeLife('An invocation', invocationLife),
    ...describeLife('An auth connection', connectionLife),
    ...describeLife('A login of an auth connection', loginLife),
  ].join('\n');
}

function describeLife(title: string, life: { states: Record<string, string>; toMermaid(): string }): string[] {
  return [`## ${title}`, '', '```mermaid', life.toMermaid(), '```', '', ...table('State', life.states)];
}

function table(head: string, meanings: Record<string, string>): string[] {
  const rows = Object.entries(meanings).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`);
  return [`| ${head} | Meaning |`, '|---|---|', ...rows, ''];
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
