import { Type, type TSchema } from 'typebox';

/** Names a shape in the reference; openapi.ts moves named shapes under `components`. */
export function named<T extends TSchema>(name: string, schema: T): T {
  return { ...schema, 'x-name': name };
}

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const oneOf = <const T extends readonly string[]>(values: T, options: Record<string, unknown> = {}) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options });
