/** Every sentence of the page. */
import type { FlowStatus } from '../../state.ts';
import type { Choice, Field } from './state.ts';

/** Labels for fields without one. */
export const unnamed: Record<Field['type'], string> = {
  identifier: 'Username or email',
  password: 'Password',
  code: 'Code',
  totp_code: 'Code from your authenticator app',
  totp_secret: 'Setup key of your authenticator app',
  text: 'Value',
};

/** Headings over choices, by their type. */
export const choose: Record<Choice['type'], string> = {
  mfa_method: 'Choose how to confirm that it is you',
  account: 'Choose an account',
  sso_provider: 'Sign in with',
  sign_in_method: 'Choose how to sign in',
  auth_method: 'Choose how to sign in',
  identifier_method: 'Choose how to sign in',
  other: 'Choose',
};

/** The same when there are fields above them. */
export const orChoose: typeof choose = {
  ...choose,
  mfa_method: 'Confirm it another way',
  account: 'Use another account',
  sign_in_method: 'Sign in another way',
  auth_method: 'Sign in another way',
  identifier_method: 'Sign in another way',
  other: 'More',
};

export const progress = {
  opening: 'Opening…',
  discovering: (site: string) => `Looking for the sign-in form of ${site}…`,
  submitting: (site: string) => `Waiting for ${site}…`,
  slow: (site: string) => `${site} takes longer than usual. There is nothing for you to do yet.`,
  sending: 'Sending…',
};

/** The last status of a flow. */
export type End = Exclude<FlowStatus, 'IN_PROGRESS'>;

export const ends: Record<End, { title(site: string): string; text?: string }> = {
  SUCCESS: { title: (site) => `You are signed in to ${site}`, text: 'You can close this page.' },
  FAILED: { title: () => 'The sign-in did not work' },
  EXPIRED: { title: () => 'The time for this sign-in is over', text: 'Nothing was changed.' },
  CANCELED: { title: () => 'This sign-in was cancelled', text: 'Nothing was changed.' },
};

export const askAgain = 'To try again, ask for a new link where you got this one.';

export const dead = {
  used: {
    title: 'This link has been used or has expired',
    text: 'It works once, in one browser tab, until its sign-in is over. If you opened it before, continue in that tab.',
  },
  ended: { title: 'This sign-in is over', text: 'It was ended, or another one was started.' },
  over: { title: 'This link does not work', text: 'Its sign-in is over, or the link is not complete.' },
  broken: { title: 'The page could not be loaded', text: 'Check your connection, then load the page again.' },
};

export const trouble = {
  unreachable: 'The service could not be reached. Your input was not sent. Try again.',
  movedOn: 'The site asked another question before your answer arrived. Answer the new question.',
  refused: (detail: string) => `This was not accepted: ${detail}`,
  lost: 'The connection was lost. Trying again…',
};

export const says = (site: string) => `${site} says:`;

export function about({
  site,
  host,
  kept,
  profile,
}: {
  site: string;
  host: string;
  kept: boolean;
  profile: string;
}): string {
  const typed = `Your input is sent to ${host}, which types it into ${site} for you.`;
  if (!kept) return typed;
  return `${typed} Usernames and passwords are stored encrypted, to keep the profile “${profile}” signed in.`;
}

export function timeLeft(seconds: number): string {
  if (seconds <= 0) return '';
  const minutes = Math.ceil(seconds / 60);
  return `${minutes} ${minutes === 1 ? 'minute' : 'minutes'} left`;
}

/** Asked before a sign-in is cancelled. */
export const cancel = 'Cancel this sign-in? Nothing is changed then.';

export const hurry = 'Less than two minutes are left to finish.';
