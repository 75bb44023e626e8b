import { entry, final } from './entry.ts';

/** Pages that are opened for one request: `/content`, `/screenshot` and the like. */
export const doorErrors = {
  function_failed: entry(400, 'The code that was sent ended with an error.', (p: { detail: string }) => p.detail),
  page_not_loaded: final(502, 'The page could not be opened.', (p: { detail: string }) => p.detail),
  result_too_large: entry(
    400,
    'The elements of the page that were asked for are too large together.',
    (p: { megabytes: number }) =>
      `The elements have more than ${p.megabytes} MB together. Ask for fewer of them, or for smaller ones.`,
  ),
  page_timed_out: final(
    504,
    'The page did not reach the requested state in time.',
    (p: { what: string; ms: number }) =>
      `${p.what} did not happen within ${p.ms} ms. Allow more time, or send bestAttempt: true to continue without it.`,
  ),
};
