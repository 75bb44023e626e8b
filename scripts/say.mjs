/**
 * How the scripts speak: progress goes to stderr, so that `corral … --json | jq` stays clean
 * even on the day it has to build first.
 */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** A reason to stop that the reader can do something about: they see the sentence, not a stack. */
export class Stop extends Error {}

/** Runs a script's work. A `Stop` ends it with its sentence and exit code 1; anything else is our bug and keeps its stack. */
export async function script(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    process.exit(1);
  }
}

/** 0.4 s, 12 s, 3 min 20 s: as exact as a reader cares. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
