import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { prepare } from './bootstrap.mjs';
import { root, show } from './run.mjs';
import { script, Stop } from './say.mjs';

/** Prepares, then runs one TypeScript file outside of src/ with the arguments we were given. */
export async function runTypeScript(file) {
  await script(async () => {
    await prepare();
    if (!existsSync(join(root, file))) throw new Stop(`There is no ${file} to run.`);
    const hooks = new URL('typescript.mjs', import.meta.url).href;
    const flags = ['--enable-source-maps', '--import', hooks];
    process.exitCode = await show(process.execPath, [...flags, file, ...process.argv.slice(2)]);
  });
}
