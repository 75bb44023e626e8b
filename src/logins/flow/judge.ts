import type { PageError, ReadingKind } from '../reading/types.ts';
import { isCode } from './codes.ts';
import { isAttended, type Flow } from './context.ts';
import { ending, type Decision } from './decision.ts';
import type { Look } from './types.ts';

/** Refusals of what a person typed, before the flow stops asking: sites lock accounts. */
const mostRefusals = 5;

const questions: ReadingKind[] = ['login', 'code', 'choice', 'change_password', 'enrol_totp', 'external'];

/** What the page says to the last submit, once. Undefined when there is nothing against it: the page is read as it is. */
export function judgeAnswer(flow: Flow, look: Look): Decision | undefined {
  if (!flow.attempt.unjudged || flow.attempt.submitted.length === 0) return undefined;
  const { reading } = look;
  const error = reading.error?.fresh ? reading.error : undefined;
  const again = asksAgain(flow, look);
  switch (error?.kind) {
    case 'locked':
      return lockedOut(flow, error.text);
    case 'rate':
      return ending('max_attempts_reached', 'The site takes no further attempts for now.', error.text);
    case 'captcha':
      return isAttended(flow) ? undefined : ending('captcha_blocked', 'The site asks for a captcha.', error.text);
    case 'credentials':
    case 'code':
      return reading.kind === 'signed_in' ? undefined : refused(flow, look, error);
    case 'other':
      // A message on the page after the login is about something else, and one beside a new field is about that.
      return again && !flow.attempt.asksMore(look) ? refused(flow, look, error) : undefined;
    default:
      return wentBack(flow, look) ?? (again ? silence(flow, look) : undefined);
  }
}

/** The page has a field of the kind that was submitted. */
export function asksAgain({ attempt: { submitted } }: Flow, { reading }: Look): boolean {
  if (!questions.includes(reading.kind)) return false;
  const types = new Set(reading.fields.map(({ type }) => type));
  if (submitted.includes('password')) return types.has('password');
  if (submitted.some((part) => part === 'code' || part === 'totp_code')) return reading.fields.some(isCode);
  return submitted.includes('identifier') && types.has('identifier') && !types.has('password');
}

function refused(flow: Flow, look: Look, { text, kind }: Pick<PageError, 'text' | 'kind'>): Decision | undefined {
  const { attempt } = flow;
  const { fields, choices, kind: page } = look.reading;
  // Only the live view shows what to set the app up with.
  if (page === 'enrol_totp') return undefined;
  const asksCode = fields.some(isCode);
  if (attempt.lastFrom === 'code') {
    // The code may have come at the edge of its window: the next window's is tried, once.
    if (asksCode && flow.factors.mayGenerate) return undefined;
    if (!isAttended(flow))
      return ending('credentials_invalid', 'The site refuses the codes that are generated from the TOTP secret.', text);
  }
  if (attempt.lastFrom === 'credential' && kind === 'other' && !isAttended(flow))
    return ending('website_error', 'The site does not take the form, for a reason other than the password.', text);
  if (attempt.lastFrom === 'credential' && !isAttended(flow))
    return ending('credentials_invalid', 'The site refuses the values of the credential.', text);
  if (attempt.refusals + 1 >= mostRefusals)
    return ending('max_attempts_reached', `The site refused what was submitted ${mostRefusals} times.`, text);
  const why = 'The site refuses what was submitted.';
  if (fields.length > 0) return { do: 'ask', fields, choices, websiteError: text, refused: true, why };
  return { do: 'start_over', websiteError: text, refused: true, why };
}

/** The same question again, without an error text. */
function silence(flow: Flow, look: Look): Decision | undefined {
  const { attempt } = flow;
  const { fields, choices } = look.reading;
  const codes = attempt.submitted.some((part) => part === 'code' || part === 'totp_code');
  if (codes && attempt.lastFrom === 'person')
    return { do: 'ask', fields, choices, refused: true, why: 'The page asks for the code again.' };
  if (codes) return refused(flow, look, { text: '', kind: 'code' });
  if (attempt.silent === 0) return undefined;
  if (attempt.lastFrom === 'person' || isAttended(flow))
    return { do: 'ask', fields, choices, refused: true, why: 'The page comes back without a word.' };
  return attempt.submitted.includes('password')
    ? ending('credentials_invalid', 'The site shows its login form again after each submit, without saying why.')
    : ending('stuck_in_loop', 'The site shows the same form again after each submit, without saying why.');
}

/** A code was submitted, and the login starts again: the site stopped waiting for it. */
function wentBack({ attempt }: Flow, { reading }: Look): Decision | undefined {
  const codes = attempt.submitted.some((part) => part === 'code' || part === 'totp_code');
  const begins =
    reading.kind === 'login' && reading.fields.some(({ type }) => type === 'password' || type === 'identifier');
  if (!codes || attempt.submitted.includes('password') || !begins || reading.fields.some(isCode)) return undefined;
  if (attempt.startedOver)
    return ending(
      'session_expired',
      'The site started the login again after the code, twice. It may take too long to arrive.',
    );
  return { do: 'start_over', why: 'The site starts the login again after the code.' };
}

/**
 * A re-authentication that ends with website_error is retried soon, which would only prolong the lock. So it reports that there were enough
 * attempts.
 */
export function lockedOut({ input }: Flow, websiteError?: string): Decision {
  const code = input.flowType === 'REAUTH' ? 'max_attempts_reached' : 'website_error';
  return ending(code, 'The site says that the account is locked or disabled.', websiteError);
}
