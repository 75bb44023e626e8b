#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkNode } from '../scripts/bootstrap.mjs';
import { compile } from '../scripts/compile.mjs';
import { staleDependencies } from '../scripts/dependencies.mjs';
import { root } from '../scripts/run.mjs';
import { script, Stop } from '../scripts/say.mjs';

const main = join(root, 'dist/cli/main.js');
await script(async () => {
  checkNode();
  if (staleDependencies()) {
    throw new Stop(`Corral is not set up here yet. Run \`npm start\` once in ${root}.`);
  }
  try {
    await compile({ quiet: true });
  } catch (error) {
    // The operator's command on a house that somebody else owns, or with a half-edited source: the last good build will do.
    if (!existsSync(main)) throw error;
  }
  if (!existsSync(main)) throw new Stop(`This build of Corral has no command line. Run \`npm run build\` in ${root}.`);
});

process.argv[1] = main;
await import(pathToFileURL(main).href);
