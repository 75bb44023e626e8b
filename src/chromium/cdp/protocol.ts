import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js';

/**
 * CDP as Chromium describes it. It types the commands that the service sends, and the fields of the messages that it reads. A message is
 * trusted only after a check (shapes.ts), since a compromised browser may send anything.
 */
export type Method = keyof ProtocolMapping.Commands;
export type EventName = keyof ProtocolMapping.Events;

type Given<M extends Method> = ProtocolMapping.Commands[M]['paramsType'];
export type Params<M extends Method> = Given<M> extends [] ? Record<string, never> : NonNullable<Given<M>[0]>;

/** The arguments of a command: its parameters, optional if all of them are, and further arguments of the caller. */
export type Arguments<M extends Method, More extends unknown[]> =
  [] extends Given<M> ? [params?: Params<M>, ...more: More] : [params: Params<M>, ...more: More];

export type Answered<M extends Method> = ProtocolMapping.Commands[M]['returnType'];
export type EventParams<E extends EventName> = ProtocolMapping.Events[E] extends [infer Only]
  ? Only
  : Record<string, never>;

/** Never, if `Read` has a field that the protocol's type lacks or has with another type. Any object can be read as a record. */
export type ReadOf<Read, Whole> = string extends keyof Read ? unknown : Plain<Whole> extends Read ? unknown : never;

/** The same fields, all required, since a check may require a field that is optional in the protocol. Not an interface: interfaces are not records. */
type Plain<T> = T extends object ? { [K in keyof T]-?: Plain<T[K]> } : T;

/** Arguments for any method, assembled by a function that passes them on; there the compiler does not know whether they may be left out. */
export function passedOn<M extends Method, More extends unknown[]>(
  params: Params<M> | undefined,
  ...more: More
): Arguments<M, More> {
  return [params, ...more] as Arguments<M, More>;
}
