import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';

type Factory = ReturnType<typeof SerializerSelector>;
type Serializer = ReturnType<ReturnType<Factory>>;

/**
 * Fastify's own serializers, each compiled when its first answer is sent. Together with the validators they were half of the time that the
 * service takes to start, and most of them are not used in a day.
 */
export const serializersOnDemand: Factory = (schemas, options) => {
  const compile = SerializerSelector()(schemas, options);
  return (route) => {
    let serialize: Serializer | undefined;
    return (answer) => (serialize ??= compile({ ...route, schema: withAnything(route.schema) }))(answer);
  };
};

/**
 * Replaces objects that may have any properties by a schema for anything. A serializer writes the former name by name, which takes five
 * times as long as `JSON.stringify` of the whole.
 */
export function withAnything<T>(schema: T): T {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(withAnything) as T;
  const { type, additionalProperties, properties, patternProperties } = schema as Record<string, unknown>;
  if (type === 'object' && additionalProperties === true && !properties && !patternProperties) return {} as T;
  return Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, withAnything(part)])) as T;
}
