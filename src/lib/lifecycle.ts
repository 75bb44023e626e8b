/**
 * A lifecycle is two tables: the states, each with a sentence that explains it, and the events that change the state,
 * each with the states it may leave. SQL guards, API enums and diagrams are derived from these.
 */
export function lifecycle<
  const States extends Record<string, string>,
  const Events extends Record<string, { from: readonly (keyof States & string)[]; to: keyof States & string }>,
>(states: States, events: Events) {
  type State = keyof States & string;
  const stateNames = Object.keys(states) as [State, ...State[]];
  const moves = Object.entries(events);

  return {
    states,
    events,
    stateNames,

    /** What an event changes, for an update: `set status = ${to} … where status = any (${from})`. */
    move: (event: keyof Events): { from: State[]; to: State } => ({
      ...events[event]!,
      from: [...events[event]!.from],
    }),

    /** A final state is left by no event. */
    isFinal: (state: State) => !moves.some(([, { from }]) => from.includes(state)),

    /** The diagram in docs/lifecycles.md; `npm run check` compares the two. */
    toMermaid: () =>
      [
        'stateDiagram-v2',
        `  [*] --> ${stateNames[0]}`,
        ...moves.flatMap(([event, { from, to }]) => from.map((state) => `  ${state} --> ${to}: ${event}`)),
      ].join('\n'),
  };
}
