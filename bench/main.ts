import { cpus, loadavg, totalmem } from 'node:os';
import { benchCdp } from './cdp-mux.ts';
import { benchCli } from './cli.ts';
import { benchComputer } from './computer.ts';
import { benchConsole } from './console.ts';
import { benchDeployments } from './deployments.ts';
import { benchEgress } from './egress.ts';
import { benchHttp } from './http.ts';
import { benchInside } from './inside.ts';
import { benchLiveView } from './live-view.ts';
import { benchLogins } from './logins.ts';
import { print, type Row } from './rows.ts';
import { benchProfiles } from './profiles.ts';
import { benchPools } from './pools.ts';
import { benchSessions } from './sessions.ts';
import { benchTelemetry } from './telemetry.ts';

/** `npm run bench`, or `npm run bench -- http` for one part. Ratios within one run are what counts. */
const parts: Record<string, () => Promise<Row[]>> = {
  http: benchHttp,
  sessions: benchSessions,
  pools: benchPools,
  cdp: benchCdp,
  egress: benchEgress,
  computer: benchComputer,
  'live-view': benchLiveView,
  inside: benchInside,
  profiles: benchProfiles,
  telemetry: benchTelemetry,
  logins: benchLogins,
  deployments: benchDeployments,
  cli: benchCli,
  console: benchConsole,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !parts[name]);
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; the parts are ${Object.keys(parts).join(', ')}.`);
  process.exit(2);
}
console.log(
  `${cpus().length} cores (${cpus()[0]?.model}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}\n`,
);
for (const [name, run] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`${name} (load ${loadavg()[0]!.toFixed(1)} at the start)`);
  print(await run());
  console.log();
}
process.exit();
