/**
 * Small checks for data from outside: a browser, a display, a viewer. Each returns whether a value has a shape, and narrows
 * its type. Fields that an object's shape does not name are not checked.
 */
export type Check<T> = (value: unknown) => value is T;
export type Checked<C> = C extends Check<infer T> ? T : never;

export const flag: Check<boolean> = (value): value is boolean => typeof value === 'boolean';
export const record: Check<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The length is in UTF-16 units. */
export const text = (maxLength: number): Check<string> => {
  return (value): value is string => typeof value === 'string' && value.length <= maxLength;
};
/** Bounded only by the message it came in. */
export const anyText = text(Infinity);

export const integer = (min: number, max: number) => ranged(min, max, Number.isInteger);
export const number = (min: number, max: number) => ranged(min, max, Number.isFinite);

function ranged(min: number, max: number, is: (value: unknown) => boolean): Check<number> {
  return (value): value is number => is(value) && Number(value) >= min && Number(value) <= max;
}

export const oneOf = <const T extends string>(...values: readonly T[]): Check<T> => {
  return (value): value is T => values.includes(value as T);
};

export const list = <T>(item: Check<T>): Check<T[]> => {
  return (value): value is T[] => Array.isArray(value) && value.every((each) => item(each));
};

/** An object used as a table: every value has the shape. */
export const table = <T>(item: Check<T>): Check<Record<string, T>> => {
  return (value): value is Record<string, T> => record(value) && Object.values(value).every((each) => item(each));
};

declare const optionalMark: unique symbol;
type OptionalCheck<T> = Check<T | undefined> & { readonly [optionalMark]?: true };

export const optional = <T>(item: Check<T>): OptionalCheck<T> => {
  return (value): value is T | undefined => value === undefined || item(value);
};

type Fields = Record<string, Check<unknown>>;
type OptionalKeys<F extends Fields> = {
  [K in keyof F]: undefined extends Checked<F[K]> ? K : never;
}[keyof F];
type ObjectOf<F extends Fields> = { [K in Exclude<keyof F, OptionalKeys<F>>]: Checked<F[K]> } & {
  [K in OptionalKeys<F>]?: Checked<F[K]>;
};

export const object = <const F extends Fields>(fields: F): Check<ObjectOf<F>> => {
  const entries = Object.entries(fields);
  return (value): value is ObjectOf<F> => record(value) && entries.every(([name, check]) => check(value[name]));
};
