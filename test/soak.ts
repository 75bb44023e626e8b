import { parseArgs } from 'node:util';
import { soak } from './support/soak.ts';

/** `npm run soak -- --sessions 300 [--concurrency 4] [--seed 1] [--capture] [--as-user]`: random kills, and a look at what they left. */
const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '300' },
    concurrency: { type: 'string', default: '4' },
    capture: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const [sessions, concurrency, seed] = [values.sessions, values.concurrency, values.seed].map(Number);

const started = performance.now();
console.log(`Seed ${seed}; the same again with --seed ${seed}${values.capture ? ' --capture' : ''}.`);
const { deeds, leftovers, surprises } = await soak({
  sessions: sessions!,
  concurrency: concurrency!,
  seed: seed!,
  capture: values.capture,
  say: (line) => console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(7)} s  ${line}`),
});
console.log();
for (const [deed, count] of Object.entries(deeds).sort(([, a], [, b]) => b - a))
  console.log(`${String(count).padStart(6)}  ${deed}`);
console.log();
for (const thing of surprises) console.log(`UNEXPECTED  ${thing}`);
for (const thing of leftovers) console.log(`LEFT  ${thing}`);
console.log(
  leftovers.length + surprises.length === 0
    ? `${sessions} sessions: nothing was left.`
    : `${sessions} sessions: ${leftovers.length} leftovers, ${surprises.length} surprises, with --seed ${seed}.`,
);
process.exit(leftovers.length + surprises.length === 0 ? 0 : 1);
