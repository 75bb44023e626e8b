/**
 * The address that the person is sent to at the end, with the outcome. Only whole http and https addresses, without a name or
 * password in them: `javascript:` would run in this page, and `https://known@other/` shows one name and goes to another.
 */
export function returnAddress(
  given: string | null,
  outcome: Record<string, string | null | undefined>,
): URL | undefined {
  if (!given || !URL.canParse(given)) return undefined;
  const address = new URL(given);
  if (!['http:', 'https:'].includes(address.protocol) || address.username || address.password) return undefined;
  for (const [name, value] of Object.entries(outcome)) if (value) address.searchParams.set(name, value);
  return address;
}
