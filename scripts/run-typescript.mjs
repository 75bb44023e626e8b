import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { showAsUser } from './as-user.mjs';
import { prepare } from './bootstrap.mjs';
import { root, show } from './run.mjs';
import { script, Stop } from './say.mjs';

/** Prepares, then runs one TypeScript file outside of src/ with the arguments of this process; with `--as-user` as an ordinary user. */
export async function runTypeScript(file) {
  await script(async () => {
    await prepare();
    if (!existsSync(join(root, file))) throw new Stop(`There is no ${file} to run.`);
    // Relative to the package's folder, which an ordinary user sees at another path.
    const flags = ['--enable-source-maps', '--import', './scripts/typescript.mjs'];
    const args = process.argv.slice(2).filter((word) => word !== '--as-user');
    const run = args.length < process.argv.length - 2 ? showAsUser : show;
    process.exitCode = await run(process.execPath, [...flags, file, ...args]);
  });
}
