/**
 * Parses query strings as clients of this interface write them: `tags[team]=a` is `{ tags: { team: 'a' } }`, a repeated
 * name is a list, and an empty value (`name=`) means "none" and counts as left out.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (value === '') continue;
    const nested = /^([^[\]]+)\[([^[\]]*)\]$/.exec(name);
    if (!nested) add(query, name, value);
    else if (nested[2] === '')
      add(query, nested[1]!, value); // tags[]=a&tags[]=b
    else {
      const [, outer = '', inner = ''] = nested;
      const there = query[outer];
      const map = isMap(there) ? there : (query[outer] = Object.create(null) as Record<string, unknown>);
      add(map, inner, value);
    }
  }
  return query;
}

function add(map: Record<string, unknown>, name: string, value: string) {
  const there = map[name];
  if (Array.isArray(there)) there.push(value);
  else map[name] = there === undefined || isMap(there) ? value : [there, value];
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
