import { existsSync } from 'node:fs';
import { checkNode } from './bootstrap.mjs';
import { compile } from './compile.mjs';
import { staleDependencies } from './dependencies.mjs';
import { root } from './run.mjs';
import { script, Stop } from './say.mjs';

/** For the command line in a checkout: builds changed files, or prints the remedy if that is not possible. */
export async function checkBuild(main) {
  await script(async () => {
    checkNode();
    if (staleDependencies()) {
      throw new Stop(`Corral is not set up here yet. Run \`npm start\` once in ${root}.`);
    }
    try {
      await compile({ quiet: true });
    } catch (error) {
      // An operator's command in a tree of another user, or with sources that do not compile, uses the last good build.
      if (!existsSync(main)) throw error;
    }
    if (!existsSync(main))
      throw new Stop(`This build of Corral has no command line. Run \`npm run build\` in ${root}.`);
  });
}
