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
    return (answer) => (serialize ??= compile(route))(answer);
  };
};
