import type { Browser } from '../../api/schema.gen.d.ts';

/** The properties of each tab of a session's screen. */
export interface Part {
  session: Browser;
}
