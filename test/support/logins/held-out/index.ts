import type { LoginCase } from '../site.ts';
import { obstacles } from './obstacles.ts';
import { plain } from './plain.ts';
import { refusals } from './refusals.ts';
import { scripted } from './script.ts';
import { steps } from './steps.ts';

/**
 * Login pages that the rules of `src/logins/` were not written with, to measure how far those rules reach. When one of them fails,
 * it is reported as "case N failed with class X", and its page is not read to write a rule: a new page of that class goes into
 * the gallery instead.
 */
export const heldOut: LoginCase[] = [...plain, ...scripted, ...steps, ...obstacles, ...refusals];
