/** Shorter values, such as `1` or `true`, are no secrets, and replacing them would garble every line. */
const shortest = 6;
/** A line of a value, such as of a key in PEM, is hidden by itself from this length on. */
const shortestLine = 16;
/** Every line is searched for all of them. More would make a line of an app cost the service too much time. */
const mostSecrets = 400;
/** A longer value is hidden from here on as far as it is there: a line that is cut may have the beginning of one only. */
const headLength = 64;
const hidden = '[redacted]';

/**
 * Replaces the values of environment variables wherever a line has them: an app that prints its configuration must not put its secrets into
 * a log that every key of the project reads. A value is also found as JSON has it, and line by line. Longer ones first, since one may contain
 * another.
 */
export function redactor(values: Iterable<string>): (text: string) => string {
  const [whole, parts] = [new Set<string>(), new Set<string>()];
  for (const value of values) {
    if (value.length < shortest) continue;
    whole.add(value);
    const escaped = JSON.stringify(value).slice(1, -1);
    if (escaped !== value) parts.add(escaped);
    if (!value.includes('\n')) continue;
    for (const line of value.split(/\r?\n/)) if (line.length >= shortestLine) parts.add(line);
  }
  const secrets = [...new Set([...whole, ...parts])].slice(0, mostSecrets).sort((a, b) => b.length - a.length);
  const hiders = secrets.map(hider);
  return (text) => hiders.reduce((line, one) => one(line), text);
}

function hider(secret: string): (text: string) => string {
  const head = secret.slice(0, headLength);
  return (text) => (text.includes(head) ? hide(text, secret, head) : text);
}

/** No character of the text is compared with more of the secret than its head: both are an app's choice, and long ones took seconds. */
function hide(text: string, secret: string, head: string): string {
  let [out, from] = ['', 0];
  for (let at = text.indexOf(head); at !== -1; at = text.indexOf(head, from)) {
    out += text.slice(from, at) + hidden;
    from = at + head.length;
    while (from - at < secret.length && text.charCodeAt(from) === secret.charCodeAt(from - at)) from++;
  }
  return out + text.slice(from);
}
