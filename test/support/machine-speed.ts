import { readFileSync } from 'node:fs';

/** Processor time of the reference work in milliseconds, on the 2.5 GHz machine of docs/benchmarks.md while nothing else runs on it. */
const referenceMs = 11;
const samples = 5;

/** JSON of 180 KB, parsed and written four times: what most of the service's longer stops consist of. */
const json = JSON.stringify(
  Array.from({ length: 2000 }, (_, i) => ({
    id: i,
    name: `name ${i}`,
    tags: ['a', 'b', String(i)],
    nested: { x: i / 3, y: null },
  })),
);

function referenceWork(): void {
  for (let i = 0; i < 4; i++) JSON.stringify(JSON.parse(json));
}

/** Processor time of the calling thread in milliseconds. */
const spent = () => Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;

/**
 * How many times longer than on the reference machine the same work takes here and now, at least 1. Shared machines run at half of their
 * speed for seconds, which processor time includes.
 */
export function slowness(): number {
  const times = Array.from({ length: samples }, () => {
    const before = spent();
    referenceWork();
    return spent() - before;
  }).sort((a, b) => a - b);
  return Math.max(1, times[Math.floor(samples / 2)]! / referenceMs);
}
