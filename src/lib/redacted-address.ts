/**
 * An address without what may be secret in it: user and password, and the values of its query, but for the `%s` of a search. It is read as
 * text, since a password that is not encoded makes an address that no parser takes apart as its owner meant it.
 */
export function redactedAddress(address: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z\d+.-]*:\/\/)(.*)$/is.exec(address) ?? [];
  if (scheme === '') return address;
  const [path, query] = splitAt(rest.slice(rest.lastIndexOf('@') + 1), '?');
  const user = rest.includes('@') ? '***@' : '';
  return `${scheme}${user}${path}${query === undefined ? '' : `?${query.split('&').map(redactedPart).join('&')}`}`;
}

function redactedPart(part: string): string {
  const [name, value] = splitAt(part, '=');
  if (value === undefined) return '***';
  return value === '' || value === '%s' ? part : `${name}=***`;
}

function splitAt(text: string, mark: string): [before: string, after: string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
