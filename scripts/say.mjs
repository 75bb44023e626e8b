/** Prints progress to stderr, so that `corral … --json | jq` stays clean even when a build comes first. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** A reason to stop that the user can act on: only the sentence is printed, without a stack. */
export class Stop extends Error {}

/** Runs a script's work. A `Stop` ends it with its sentence and exit code 1; any other error is a bug and keeps its stack. */
export async function script(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    process.exit(1);
  }
}

/** 0.4 s, 12 s, 3 min 20 s: rounded for people. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
