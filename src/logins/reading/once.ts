/** A function of a page or of one of its items that is asked often, and worked out once for each. */
export function once<Of extends object, T>(work: (of: Of) => T): (of: Of) => T {
  const known = new WeakMap<Of, { is: T }>();
  return (of) => {
    let found = known.get(of);
    if (found === undefined) known.set(of, (found = { is: work(of) }));
    return found.is;
  };
}
