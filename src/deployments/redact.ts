import { textFinder, withoutPlaces } from '../lib/text-finder.ts';

/** Shorter values, such as `1` or `true`, are no secrets, and replacing them would garble every line. */
const shortest = 6;
/** A line of a value, such as of a key in PEM, is hidden by itself from this length on. */
const shortestLine = 16;
/** A longer value is hidden from here on as far as it is there: a line that is cut may have the beginning of one only. */
const headLength = 64;
/** Characters of all heads together. This bounds the memory of the search. */
const mostHidden = 32_768;
/** Of these, for the deployment's key and the token of its repository, each with its JSON form. */
const ofService = 4 * headLength;
const hidden = '[redacted]';

/**
 * Replaces the values of environment variables wherever a line has them: an app that prints its configuration must not put its secrets into
 * a log that every key of the project reads. A value is also found as JSON has it, and line by line.
 *
 * Values and text are both an app's choice. So a text is read once, for all secrets at the same time, however many of them it nearly has.
 */
export function redactor(values: Iterable<string>): (text: string) => string {
  const secrets = formsOf(values);
  if (secrets.length === 0) return (text) => text;
  if (headsOf(secrets) > mostHidden) return () => hidden; // deployments from before their variables had this bound
  const placesIn = textFinder(secrets, headLength);
  return (text) => (text.length < shortest ? text : withoutPlaces(text, placesIn(text), hidden));
}

/** Whether all these values can be hidden in the lines of a deployment. */
export const canHide = (values: Iterable<string>) => headsOf(formsOf(values)) <= mostHidden - ofService;

/** The values with their JSON forms and their lines. */
function formsOf(values: Iterable<string>): string[] {
  const forms = new Set<string>();
  for (const value of values) {
    if (value.length < shortest) continue;
    forms.add(value);
    forms.add(JSON.stringify(value).slice(1, -1));
    if (!value.includes('\n')) continue;
    for (const line of value.split(/\r?\n/)) if (line.length >= shortestLine) forms.add(line);
  }
  return [...forms];
}

const headsOf = (texts: string[]) => texts.reduce((sum, { length }) => sum + Math.min(length, headLength), 0);
