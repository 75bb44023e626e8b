/**
 * The script of the forms: it runs in an isolated world of a document and stays there. The page cannot see it or change its objects. Of
 * the value of a field it returns only whether there is one.
 */
import type { FormsCalls } from '../page-calls.ts';
import { aim, checkedness, choose, empty, focus, focused, holds, insert, put } from './actions.ts';
import { observe, stillSince } from './changes.ts';
import { find } from './find.ts';
import { framePlace, frameShift } from './frame-element.ts';
import { look } from './look.ts';
import { storage } from './storage.ts';

observe(document);

export const calls: FormsCalls = {
  look,
  find,
  aim,
  stillSince,
  focused,
  focus,
  holds,
  insert,
  empty,
  put,
  choose,
  checkedness,
  storage,
  framePlace,
  frameShift,
};

Object.defineProperty(globalThis, 'corralForms', { value: calls });
