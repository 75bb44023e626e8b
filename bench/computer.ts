import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { detectIsolation } from '../src/chromium/browser/launch.ts';
import { destinations } from '../src/chromium/egress/destinations.ts';
import { startEngine, type Engine } from '../src/chromium/engine.ts';
import { tree } from '../src/chromium/sandbox/process-tree.ts';
import { record } from '../src/chromium/recorder/recorder.ts';
import { silent } from '../src/lib/log.ts';
import { median, type Row } from './rows.ts';

const viewport = { width: 1280, height: 720 };
const screenshots = 40;
const recordMs = 10_000;
const framerate = 10;

/** Changes in a corner ten times a second, and all over twice a second: a page that somebody works on. */
const page = `data:text/html,${encodeURIComponent(`<body style="font: 60px sans-serif"><div id=n></div><div id=all></div>
<script>let i = 0; setInterval(() => { n.textContent = ++i;
  if (i % 5 === 0) all.innerHTML = Array.from({ length: 60 }, (_, k) => (i * 7919 + k * 104729) % 99991).join(' '); }, 100)</script>`)}`;

/** Screenshots a second, and what recording costs, in percent of a core: this process, which hands the pictures on, and ffmpeg. */
export async function benchComputer(): Promise<Row[]> {
  const rows: Row[] = [];
  const isolation = await detectIsolation();
  for (const headless of [true, false]) {
    const name = headless ? 'headless' : 'headful';
    const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
    const launch = {
      dir: join(dir, 's'),
      headless,
      stealth: false,
      kiosk_mode: false,
      gpu: false,
      viewport,
      isolation,
    };
    const whenGone = () => ({ code: 1011, reason: 'gone' });
    const allow = destinations({ allow: [], service: [] });
    const engine = await startEngine({ launch, allow, log: silent, whenGone }, AbortSignal.timeout(30_000));
    try {
      await engine.open(page);
      await sleep(1000);
      rows.push(...(await pictures(engine, name)), await recording(engine, name, isolation));
    } finally {
      await engine.close();
      await rm(dir, { recursive: true, force: true });
    }
  }
  return rows;
}

async function pictures({ computer }: Engine, name: string): Promise<Row[]> {
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < screenshots; i++) {
    const started = performance.now();
    bytes = (await computer.screenshot(undefined)).length;
    times.push(performance.now() - started);
  }
  const beside = `${median(times).toFixed(0)} ms each, ${Math.round(bytes / 1024)} KiB`;
  return [{ what: `${name}: screenshots at 1280×720`, value: 1000 / median(times), unit: '/s', beside }];
}

async function recording(engine: Engine, name: string, isolation: Parameters<typeof record>[2]): Promise<Row> {
  const started = await record(engine, framerate, isolation);
  started.output.resume();
  await sleep(1000);
  const processes = () => tree(process.pid).filter((pid) => commandOf(pid) === 'ffmpeg');
  const before = { own: process.cpuUsage(), ffmpeg: total(processes()) };
  await sleep(recordMs);
  const own = process.cpuUsage(before.own);
  const ffmpeg = total(processes()) - before.ffmpeg;
  started.stop();
  await started.ended;
  const ownMs = (own.user + own.system) / 1000;
  return {
    what: `${name}: recording at 1280×720, ${framerate} a second`,
    value: ((ownMs + ffmpeg) / recordMs) * 100,
    unit: '% of a core',
    beside: `ffmpeg ${((ffmpeg / recordMs) * 100).toFixed(1)} %, the service ${((ownMs / recordMs) * 100).toFixed(1)} %`,
  };
}

const total = (pids: number[]) => pids.reduce((sum, pid) => sum + processorMs(pid), 0);

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

/** User and system time, in clock ticks of a hundredth of a second. */
function processorMs(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}
