import { fragmentRouted, queryRouted, twoWays } from './routes.ts';
import type { Cause } from './shell.ts';
import { busyPage, codeInForm, slowStart } from './slow.ts';
import { closedMenu, deadToken, earlyLogout } from './tokens.ts';

/** A site for each cause of a login that failed, or of a wrong word about one, on real applications. */
export const causes: readonly Cause[] = [
  earlyLogout,
  codeInForm,
  closedMenu,
  deadToken,
  queryRouted,
  fragmentRouted,
  twoWays,
  busyPage,
  slowStart,
];
