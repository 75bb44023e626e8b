import type { Connection, StateEvent, SubmitFields } from '../../schema.ts';

/** The connection as it was read, with what events changed since. */
export type State = Partial<Connection>;
/** The service's messages about a flow: the connection when it is read, and an event for each change. */
export type News = Connection | StateEvent;
export type Submit = SubmitFields;

export type Field = NonNullable<StateEvent['fields']>[number];
export type Choice = NonNullable<StateEvent['choices']>[number];
/** A field in the interface's older form, which knows more about the input. */
export type OlderField = NonNullable<StateEvent['discovered_fields']>[number];
