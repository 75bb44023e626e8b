import type { Reporter, TestModule } from 'vitest/node';

const SHOWN = 30;

/** Prints the files that took longest, with their durations, at the end of a run. */
export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length < 2) return;
    const files = modules.map((module) => ({ name: module.relativeModuleId, seconds: secondsOf(module) }));
    files.sort((a, b) => b.seconds - a.seconds);
    const sum = files.reduce((total, { seconds }) => total + seconds, 0);
    console.log('Slowest files (seconds)');
    for (const { name, seconds } of files.slice(0, SHOWN)) console.log(row(seconds, name));
    console.log(`${row(sum, `all ${files.length} files`)}\n`);
  }
}

/** From the import of the file to the end of its last hook. */
function secondsOf(module: TestModule): number {
  const { setupDuration, collectDuration, duration } = module.diagnostic();
  return (setupDuration + collectDuration + duration) / 1000;
}

const row = (seconds: number, name: string) => `${seconds.toFixed(1).padStart(8)}  ${name}`;
