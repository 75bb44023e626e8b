import type { Forms } from '../../sessions/forms.ts';

/** The browser as a flow needs it. Letting go of it is up to those who made it. */
export type FlowBrowser = Omit<Forms, 'dispose' | 'stored'>;

export { FormsError, type Action, type Allow, type Passkey, type StateFingerprint } from '../../sessions/forms.ts';
