import { parseArgs } from 'node:util';
import { root, show } from './run.mjs';
import { script } from './say.mjs';

/** `npm run fuzz -- --seed 1 --messages 1000000`: a lying browser, display and guest against all code that reads their messages. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    messages: { type: 'string', default: '1000000' },
  },
});

await script(async () => {
  const options = JSON.stringify({ seed: Number(values.seed), messages: Number(values.messages) });
  const args = ['--expose-gc', 'test/support/run-ts.mjs', 'test/support/hostile/fuzz.ts', options];
  process.exitCode = await show(process.execPath, args, { cwd: root });
});
