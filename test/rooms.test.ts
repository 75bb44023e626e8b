import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { violations } from '../scripts/rooms.mjs';

const script = fileURLToPath(new URL('../scripts/rooms.mjs', import.meta.url));

/** Each house has one thing wrong with it, and the sentence that should say so. */
const wrong: [file: string, code: string, sentence: RegExp][] = [
  [
    'telemetry/service.ts',
    "import { x } from '../sessions/service.ts';",
    /:1 reaches sessions\/service\.ts: telemetry\/ may reach no other room; publish an event/,
  ],
  [
    'pools/acquire.ts',
    "\n\nimport { x } from '../org/service.ts';",
    /:3 reaches org\/service\.ts: pools\/ may reach only sessions/,
  ],
  [
    'pools/service.ts',
    "import type { Row } from '../sessions/store.ts';",
    /queries of another room: ask sessions\/service\.ts/,
  ],
  [
    'api/caller.ts',
    "import type { Caller } from '../org/service.ts';",
    /reaches org\/service\.ts: api\/ may reach no other room/,
  ],
  ['pools/service.ts', "import { x } from '../app.ts';", /reaches app\.ts, which puts the rooms together/],
  ['pools/service.ts', "import { x } from '../app/pools.ts';", /reaches app\/pools\.ts, which puts the rooms together/],
  ['pools/service.ts', "import { x } from '../errors/pools.ts';", /reaches errors\/pools\.ts: pools\/ may reach only/],
  ['chromium/browser/launch.ts', "import { errors } from '../../errors.ts';", /chromium\/ knows only lib\//],
  [
    'chromium/cdp/mux.ts',
    "import { x } from '../pages/clipboard.ts';",
    /chromium\/cdp may reach only sandbox of chromium\//,
  ],
  ['chromium/attic/x.ts', "import { x } from '../cdp/mux.ts';", /give chromium\/attic a line/],
  ['lib/undo.ts', "export { x } from '../errors.ts';", /lib\/ imports no other code of the service/],
  ['store/open.ts', "import { x } from '../org/store.ts';", /store\/ knows connections, not rooms/],
  ['errors.ts', "import { x } from './org/schema.ts';", /errors\.ts is below every room/],
  ['errors/org.ts', "import { x } from '../org/schema.ts';", /errors is below every room/],
  ['org/service.ts', "import {\n  config,\n} from '../config.ts';", /:1 reaches config\.ts for more than types/],
  ['org/service.ts', "import { page } from '../api/paging.ts';", /only routes\.ts, schema\.ts and sockets speak HTTP/],
  ['docs/assets.ts', "import { x } from './web/start.ts';", /reaches docs\/web\/start\.ts, which runs in browsers/],
  ['org/service.ts', "const x = await import('../../bench/main.ts');", /outside of the service/],
  ['attic/service.ts', "import { x } from '../lib/undo.ts';", /a room the plan does not have/],
  ['org/key-store.ts', "import { x } from './key-service.ts';", /a store only answers/],
  ['org/service.ts', "import { x } from './routes.ts';", /a service does not know its paths/],
  ['org/routes.ts', "import { x } from './store.ts';", /routes call the service/],
  ['org/service.ts', "import type { FastifyRequest } from 'fastify';", /reaches fastify: keep HTTP in api\//],
  ['org/store.ts', "import pg from 'pg';", /reaches pg: take a connection from store\//],
  [
    'store/migrate.ts',
    "import { spawn } from 'node:child_process';",
    /reaches node:child_process: let chromium\/ run it/,
  ],
  ...['chromium/browser/launch.ts', 'sessions/downloads.ts', 'chromium/guest/outside.ts'].flatMap((file) =>
    ["import { rm } from 'node:fs/promises';", "import fs from 'node:fs';"].map((code): [string, string, RegExp] => [
      file,
      code,
      /reaches node:fs(\/promises)?: give chromium\/sandbox\/outside\.ts a function that goes by descriptors/,
    ]),
  ),
  [
    'cli/main.ts',
    "import { keyStore } from '../org/store.ts';",
    /a client of the service knows its API and nothing else/,
  ],
  ['sessions/service.ts', "import { WebSocket } from 'ws';", /reaches ws: keep websockets in api\//],
  ['main.ts', 'const port =\n  process.env.CORRAL_PORT;', /:2 uses process\.env: add the setting to config\.ts/],
  [
    'org/service.ts',
    'const rows = await db.query(`\n  select id from keys where …`);',
    /uses SQL: give the room's store\.ts/,
  ],
];

/** A house where every import that looks bold is allowed. */
const right: Record<string, string> = {
  'main.ts': "import { app } from './app.ts';\nimport { config } from './config.ts';",
  'app.ts': "import { sessionStore } from './sessions/store.ts';\nimport { server } from './api/server.ts';",
  'app/pools.ts': "import { poolStore } from '../pools/store.ts';\nimport type { FastifyBaseLogger } from 'fastify';",
  'errors.ts': "import { poolErrors } from './errors/pools.ts';",
  'errors/pools.ts': "import { entry } from './entry.ts';",
  'config.ts': 'export const port = Number(process.env.CORRAL_PORT);',
  'cli/main.ts': "import { version } from '../version.ts';\nawait import('./operator/keys.ts');",
  'cli/operator/keys.ts': "import { keyStore } from '../../org/store.ts';",
  'api/server.ts':
    "import Fastify from 'fastify';\nimport { WebSocketServer } from 'ws';\nimport { errors } from '../errors.ts';",
  'org/routes.ts':
    "import type { FastifyPluginAsync } from 'fastify';\nimport { page } from '../api/paging.ts';\nimport { x } from './service.ts';",
  'org/service.ts':
    "import { type Config, type Port } from '../config.ts';\nimport { errors } from '../errors.ts';\nimport { x } from './store.ts';",
  'org/store.ts': "import type { Db } from '../store/open.ts';\nexport const all = 'select * from keys';",
  'sessions/service.ts':
    "import { launch } from '../chromium/browser/launch.ts';\nimport { profiles } from '../profiles/service.ts';",
  'sessions/cdp-socket.ts': "import { WebSocket } from 'ws';",
  'chromium/sandbox/outside.ts': "import { open } from 'node:fs/promises';",
  'chromium/guest/inside/files.ts': "import { readFileSync } from 'node:fs';",
  'lib/files.ts': "import { readFile } from 'node:fs/promises';",
  'chromium/browser/launch.ts':
    "import { spawn } from 'node:child_process';\nimport { undo } from '../../lib/undo.ts';\nimport { x } from '../sandbox/sandboxed-process.ts';",
  'store/embedded-server.ts': "import { spawn } from 'node:child_process';\nimport pg from 'pg';",
  'pools/words.ts': [
    '// import { x } from "../api/server.ts" would be wrong, and process.env too',
    "export const advice = 'Select a browser from the pool, see https://example.com/process';",
  ].join('\n'),
  'pools/pools.test.ts': "import { x } from '../app.ts';\nconst home = process.env.HOME;",
};

const folders: string[] = [];
afterEach(() => Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true }))));

describe('the plan of the house', () => {
  test.for(wrong)('the report for %s names the remedy for %j', async ([file, code, sentence]) => {
    const sentences = violations(await house({ [file]: code }));
    expect(sentences).toHaveLength(1);
    expect(sentences[0]).toMatch(new RegExp(`^src/${file}:`));
    expect(sentences[0]).toMatch(sentence);
  });

  test('a house that keeps to it passes in silence', async () => {
    expect(violations(await house(right))).toEqual([]);
  });

  test('every breach is reported, not only the first, and the script fails', async () => {
    const src = await house({
      'lib/a.ts': "import { x } from '../errors.ts';\nimport pg from 'pg';",
      'lib/b.ts': "import { x } from '../store/open.ts';",
    });
    const { status, stdout } = spawnSync(process.execPath, [script, src], { encoding: 'utf8' });
    expect(stdout.trim().split('\n')).toHaveLength(3);
    expect(status).toBe(1);
  });
});

/** Writes the files into a folder of their own and returns its src. */
async function house(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'corral-rooms-'));
  folders.push(folder);
  for (const [name, code] of Object.entries(files)) {
    const path = join(folder, 'src', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, code);
  }
  return join(folder, 'src');
}
