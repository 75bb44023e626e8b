import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { startService } from '../test/support/service.ts';
import { median, type Row } from './rows.ts';

const bin = join(import.meta.dirname, '../bin/corral.cjs');

/**
 * `corral browsers list` from the start of its process to its end, beside a Node that does nothing. The two take turns, so that other load
 * of the machine affects both.
 */
export async function benchCli(): Promise<Row[]> {
  const service = await startService({ CORRAL_LOG_LEVEL: 'info' });
  const env = { ...process.env, CORRAL_URL: service.url, CORRAL_API_KEY: service.key };
  const time = async (...args: string[]) => {
    const started = performance.now();
    const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
    const code = await new Promise((resolve) => child.on('exit', resolve));
    if (code !== 0) throw new Error(`${args.join(' ')} exited with ${String(code)}.`);
    return performance.now() - started;
  };
  const list: number[] = [];
  const nothing: number[] = [];
  for (let round = 0; round < 22; round++) {
    const [ours, theirs] = [await time(bin, 'browsers', 'list'), await time('-e', '0')];
    // The first two rounds bring the files into memory.
    if (round >= 2) {
      list.push(ours);
      nothing.push(theirs);
    }
  }
  await service.close();
  return [
    {
      what: 'corral browsers list, from start to end',
      value: median(list),
      unit: 'ms',
      ratio: median(list) / median(nothing),
      beside: `node -e 0 (${median(nothing).toFixed(0)} ms)`,
      bar: 'under 150 ms',
    },
  ];
}
