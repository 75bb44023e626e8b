import type { OpenCredential } from '../../credentials/service.ts';
import type { ReadField } from '../reading/types.ts';
import type { Scrubber } from './scrub.ts';
import { prepared } from './values.ts';

export interface HiddenValues {
  /** Removes every typed value from texts. */
  scrub: Scrubber;
  /** Removes only passwords and codes: people choose among accounts by their names. */
  secrets: Scrubber;
}

/** From now on, the reports and records of the flow do not contain the value. */
export function hideTyped({ scrub, secrets }: HiddenValues, { type, options }: ReadField, value: string): void {
  if (options) return;
  scrub.add(value);
  if (type !== 'identifier' && type !== 'text') secrets.add(value);
}

export function hideSecret({ scrub, secrets }: HiddenValues, secret: string | undefined): void {
  scrub.add(secret);
  secrets.add(secret);
}

/** The same for all values of the credential, typed or not. */
export function hideCredential(hidden: HiddenValues, { values, totp }: OpenCredential): void {
  const codes = totp ? [totp.secret] : [];
  const { entries } = prepared(values);
  hidden.scrub.hold([...codes, ...entries.map(({ value }) => value)]);
  hidden.secrets.hold([...codes, ...entries.flatMap(({ secret, value }) => (secret ? [value] : []))]);
}
