/**
 * Runs `work` of a key once at a time. Calls during a run are merged into one more run after it, since `work` reads the newest state
 * itself. All callers get the end of the last of these runs. After a failure the merged run is left out.
 */
export function mergedRuns<Key = void>(work: (key: Key) => Promise<void>): (key: Key) => Promise<void> {
  const current = new Map<Key, { again: boolean; over: Promise<void> }>();

  async function run(key: Key, state: { again: boolean }): Promise<void> {
    try {
      do {
        state.again = false;
        await work(key);
      } while (state.again);
    } finally {
      current.delete(key); // in the turn that has read `again`: a call afterwards starts a run of its own
    }
  }

  return (key) => {
    const known = current.get(key);
    if (known) {
      known.again = true;
      return known.over;
    }
    let settle!: (run: Promise<void>) => void;
    const over = new Promise<void>((resolve) => (settle = resolve));
    const state = { again: false, over };
    current.set(key, state);
    settle(run(key, state));
    return over;
  };
}
