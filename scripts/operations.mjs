/**
 * The operations of openapi.json in the few words that the command line needs: method, path, and the fields that become options. The whole
 * document is 0.8 MB, and parsing it would be felt at each start of a command.
 */
export function operationsOf(document) {
  const found = {};
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (!operation.operationId) continue;
      found[operation.operationId] = describe(document, method, path, operation);
    }
  }
  return found;
}

function describe(document, method, path, operation) {
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
  const [kind, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const body = kind && kind !== 'application/octet-stream' ? fieldsOf(document, media.schema) : [];
  const answers = Object.entries(operation.responses).filter(([status]) => Number(status) < 300);
  const answer = answers.flatMap(([, { content }]) => Object.keys(content ?? {}))[0];
  return {
    method: method.toUpperCase(),
    path,
    about: operation.summary ?? '',
    query: query.map(({ name, schema, required, description }) => ({
      ...shape(document, schema),
      name,
      about: firstSentence(description ?? resolve(document, schema).description),
      ...(required && resolve(document, schema).default === undefined ? { required } : {}),
    })),
    body,
    ...(kind ? { sends: kind } : {}),
    ...(answer ? { answers: answer } : {}),
  };
}

/** The fields of an object, and of the objects in it by dotted names: `viewport.width`. */
function fieldsOf(document, schema, prefix = '') {
  const { properties = {}, required = [] } = resolve(document, schema);
  return Object.entries(properties).flatMap(([key, property]) => {
    const full = resolve(document, property);
    const name = `${prefix}${key}`;
    const field = {
      ...shape(document, property),
      name,
      about: firstSentence(property.description ?? full.description),
      ...(required.includes(key) && prefix === '' && full.default === undefined ? { required: true } : {}),
    };
    return [field, ...(prefix === '' && full.properties ? fieldsOf(document, full, `${name}.`) : [])];
  });
}

function shape(document, schema) {
  const full = resolve(document, schema);
  const values = full.enum ?? (full.const === undefined ? undefined : [full.const]);
  if (values?.every((value) => typeof value === 'string')) return { type: 'string', values };
  if (full.format === 'binary') return { type: 'file' };
  if (full.type === 'integer' || full.type === 'number') return { type: 'number' };
  if (full.type === 'string' || full.type === 'boolean') return { type: full.type };
  if (full.type === 'array') {
    const of = shape(document, full.items ?? {});
    if (!of.many && (of.type === 'string' || of.type === 'number')) return { ...of, many: true };
  }
  return { type: 'json', kind: kindOf(document, schema) };
}

/** The type of a value and of the items of a list, in words of JSON Schema. The service checks the rest. */
function kindOf(document, schema) {
  const full = resolve(document, schema);
  if (full.type === undefined && !full.properties) return {};
  const type = full.type ?? 'object';
  return {
    type: takesNull(document, schema) ? [type, 'null'] : type,
    ...(type === 'array' ? { items: kindOf(document, full.items ?? {}) } : {}),
  };
}

function takesNull(document, schema) {
  const { $ref, anyOf, oneOf, type, const: only } = schema;
  if ($ref) return takesNull(document, at(document, $ref));
  if (type === 'null' || only === null || (Array.isArray(type) && type.includes('null'))) return true;
  return (anyOf ?? oneOf ?? []).some((one) => takesNull(document, one));
}

/** References followed, alternatives to null left out, parts of an allOf put together. A union of strings is a string. */
function resolve(document, schema) {
  if (schema.$ref) return { ...resolve(document, at(document, schema.$ref)), ...described(schema) };
  if (schema.allOf) {
    const { allOf, ...own } = schema;
    const parts = [...allOf.map((part) => resolve(document, part)), own];
    return { ...Object.assign({}, ...parts), properties: Object.assign({}, ...parts.map((part) => part.properties)) };
  }
  const choices = (schema.anyOf ?? schema.oneOf)?.map((one) => resolve(document, one));
  if (!choices || schema.properties) return Array.isArray(schema.type) ? { ...schema, type: notNull(schema) } : schema;
  const real = choices.filter((one) => one.type !== 'null' && one.const !== null);
  const rest = schema.default === undefined ? described(schema) : { ...described(schema), default: schema.default };
  if (real.length === 1) return { ...real[0], ...rest };
  const words = real.flatMap((one) => one.enum ?? (typeof one.const === 'string' ? [one.const] : [undefined]));
  if (words.every((word) => typeof word === 'string')) return { type: 'string', enum: [...new Set(words)], ...rest };
  if (real.every((one) => one.properties)) return { ...union(document, real), ...rest };
  const [first] = real;
  return {
    ...(real.every((one) => one.type === first?.type && !one.properties) ? { type: first?.type } : {}),
    ...rest,
  };
}

/** What a reference such as `#/components/schemas/Browser` names. */
function at(document, reference) {
  return reference
    .slice(2)
    .split('/')
    .reduce((found, step) => found[step], document);
}

/** The fields of every alternative. Required is what each of them requires. */
function union(document, alternatives) {
  const names = [...new Set(alternatives.flatMap((one) => Object.keys(one.properties)))];
  const properties = names.map((name) => {
    const kinds = alternatives.flatMap((one) => (one.properties[name] ? [one.properties[name]] : []));
    return [name, kinds.length === 1 ? kinds[0] : { ...described(kinds[0]), anyOf: kinds }];
  });
  const required = names.filter((name) => alternatives.every((one) => one.required?.includes(name)));
  return { type: 'object', properties: Object.fromEntries(properties), required };
}

function described({ description }) {
  return description === undefined ? {} : { description };
}

function notNull(schema) {
  const [first, ...others] = schema.type.filter((type) => type !== 'null');
  return others.length === 0 ? first : undefined;
}

function firstSentence(text = '') {
  return text.split(/(?<=[.!?])\s/)[0].trim();
}
