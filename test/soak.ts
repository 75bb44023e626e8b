import { parseArgs } from 'node:util';
import { killAtMoments } from './support/soak-moments.ts';
import { soak, type SoakReport } from './support/soak.ts';

/**
 * `npm run soak -- --sessions 300 --moments 200 [--concurrency 4] [--seed 1] [--capture] [--as-user]`: random kills, and a look at what they
 * left. The sessions are killed with the service. The moments are kills in the middle of logins, deployments, recordings, captures, live
 * views and profile saves, which one service has to outlive. Zero of either leaves it out.
 */
const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '300' },
    moments: { type: 'string', default: '200' },
    concurrency: { type: 'string', default: '4' },
    capture: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const [sessions, moments, concurrency, seed] = [values.sessions, values.moments, values.concurrency, values.seed].map(
  Number,
) as [number, number, number, number];

const started = performance.now();
const say = (line: string) =>
  console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(7)} s  ${line}`);
console.log(`Seed ${seed}; the same again with --seed ${seed}${values.capture ? ' --capture' : ''}.`);
let clean = true;
if (sessions > 0)
  print(`${sessions} sessions`, await soak({ sessions, concurrency, seed, capture: values.capture, say }));
if (moments > 0) print(`${moments} moments`, await killAtMoments({ moments, concurrency, seed, say }));
process.exit(clean ? 0 : 1);

/** Prints the actions, and the findings after them. */
function print(what: string, { deeds, leftovers, surprises }: SoakReport): void {
  console.log();
  for (const [deed, count] of Object.entries(deeds).sort(([, a], [, b]) => b - a))
    console.log(`${String(count).padStart(6)}  ${deed}`);
  console.log();
  for (const thing of surprises) console.log(`UNEXPECTED  ${thing}`);
  for (const thing of leftovers) console.log(`LEFT  ${thing}`);
  const found = leftovers.length + surprises.length;
  clean &&= found === 0;
  console.log(
    found === 0
      ? `${what}: nothing was left.`
      : `${what}: ${leftovers.length} leftovers, ${surprises.length} surprises, with --seed ${seed}.`,
  );
}
