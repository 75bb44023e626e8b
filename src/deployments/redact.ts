import { textFinder, withoutPlaces } from '../lib/text-finder.ts';

/** Shorter values, such as `1` or `true`, are no secrets, and replacing them would garble every line. */
const shortest = 6;
/** A line of a value, such as of a key in PEM, is hidden by itself from this length on. */
const shortestLine = 16;
/** With the length of a head, this bounds the memory of the search. */
const mostSecrets = 400;
/** A longer value is hidden from here on as far as it is there: a line that is cut may have the beginning of one only. */
const headLength = 64;
const hidden = '[redacted]';

/**
 * Replaces the values of environment variables wherever a line has them: an app that prints its configuration must not put its secrets into
 * a log that every key of the project reads. A value is also found as JSON has it, and line by line.
 *
 * Values and text are both an app's choice. So a text is read once, for all secrets at the same time, however many of them it nearly has.
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
  const secrets = [...new Set([...whole, ...parts])].slice(0, mostSecrets);
  if (secrets.length === 0) return (text) => text;
  const placesIn = textFinder(secrets, headLength);
  return (text) => (text.length < shortest ? text : withoutPlaces(text, placesIn(text), hidden));
}
