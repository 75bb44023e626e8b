import { existsSync } from 'node:fs';
import { checkNode } from './bootstrap.mjs';
import { compile } from './compile.mjs';
import { staleDependencies } from './dependencies.mjs';
import { root } from './run.mjs';
import { script, Stop } from './say.mjs';

/** For the command line in a checkout: builds what changed, and says what to do where that is not possible. */
export async function checkBuild(main) {
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
    if (!existsSync(main))
      throw new Stop(`This build of Corral has no command line. Run \`npm run build\` in ${root}.`);
  });
}
