/**
 * Fails when a service refused something with a code that its route does not declare. `log` is what the service logged; each such refusal is
 * a line of it (`request.refused_against_reference`). Refusals from 500 on depend on how busy the machine is, so they are only logged: a
 * test must not fail by chance.
 */
export function expectRefusalsDeclared(log: readonly string[]): void {
  const undeclared = new Set<string>();
  for (const line of log) {
    if (!line.includes('request.refused_against_reference') || !line.trimEnd().endsWith('}')) continue; // a kill cuts the last line
    const { method, route, code, status } = JSON.parse(line) as Record<'method' | 'route' | 'code' | 'status', string>;
    if (Number(status) >= 500) continue;
    undeclared.add(`${method} ${route} refuses with ${code}: add it to the refusals(...) of its schema.`);
  }
  if (undeclared.size > 0) throw new Error(`The reference lacks refusals:\n${[...undeclared].sort().join('\n')}`);
}
