/** A query with its values apart. Only the `sql` tag makes it, so that no value ever becomes part of the text. */
export interface Sql {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The same template in the source is the same statement: prepared once per connection, by this name. */
const prepared = new WeakMap<TemplateStringsArray, { name: string; text: string }>();
let count = 0;

export function sql(strings: TemplateStringsArray, ...values: unknown[]): Sql {
  let statement = prepared.get(strings);
  if (!statement) {
    const text = strings.reduce((text, part, index) => `${text}$${index}${part}`);
    statement = { name: `corral_${++count}`, text };
    prepared.set(strings, statement);
  }
  return { ...statement, values };
}
