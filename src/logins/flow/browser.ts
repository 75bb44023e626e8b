import { FormsError, type Forms } from '../../sessions/forms.ts';

/** The browser as a flow needs it. The caller that opened it disposes of it. */
export type FlowBrowser = Omit<Forms, 'dispose' | 'stored'>;

export { FormsError, type Action, type Allow, type Passkey, type StateFingerprint } from '../../sessions/forms.ts';

/** The page computes. It may answer later. */
export const isFrozen = (error: unknown) => error instanceof FormsError && error.fault === 'frozen';

/** The page or the element was removed. The next look shows its replacement. */
export const isPassing = (error: unknown) =>
  error instanceof FormsError && (error.fault === 'stale' || error.fault === 'page_gone');
