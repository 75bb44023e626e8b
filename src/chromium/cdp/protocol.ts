import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js';

/**
 * CDP as Chromium describes it. It types what the service sends, and which fields there are to be read of what comes; what came is
 * believed only after a check (shapes.ts), since a browser that a page has taken over sends anything.
 */
export type Method = keyof ProtocolMapping.Commands;
export type EventName = keyof ProtocolMapping.Events;

type Given<M extends Method> = ProtocolMapping.Commands[M]['paramsType'];
export type Params<M extends Method> = Given<M> extends [] ? Record<string, never> : NonNullable<Given<M>[0]>;

/** The arguments of a command: its parameters, which may be left out where all of them are optional, and what the caller adds. */
export type Arguments<M extends Method, More extends unknown[]> =
  [] extends Given<M> ? [params?: Params<M>, ...more: More] : [params: Params<M>, ...more: More];

export type Answered<M extends Method> = ProtocolMapping.Commands[M]['returnType'];
export type Told<E extends EventName> = ProtocolMapping.Events[E] extends [infer Only] ? Only : Record<string, never>;

/** Never, where `Read` has a field that the protocol's type has not, or has with another type. Any object can be read as a record. */
export type ReadOf<Read, Whole> = string extends keyof Read ? unknown : Plain<Whole> extends Read ? unknown : never;

/** The same fields, all of them there, since a check may ask for one that the protocol calls optional. No interface: those are no records. */
type Plain<T> = T extends object ? { [K in keyof T]-?: Plain<T[K]> } : T;

/** Arguments put together by a function that passes them on for any method; the compiler cannot tell there whether they may be left out. */
export function passedOn<M extends Method, More extends unknown[]>(
  params: Params<M> | undefined,
  ...more: More
): Arguments<M, More> {
  return [params, ...more] as Arguments<M, More>;
}
