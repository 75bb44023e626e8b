import type { FlowState } from '../../../src/logins/flow/types.ts';

/** A login that waits for a user name and a password, or for one of three choices. */
export const loginState = (changes: Partial<FlowState> = {}): FlowState => ({
  step: 'AWAITING_INPUT',
  fields: [
    {
      id: 'identifier',
      question: 'q-identifier',
      ref: 'r1',
      type: 'identifier',
      key: 'email',
      label: 'Mail',
      required: true,
      filled: false,
      selectors: ['#mail', 'input[name=mail]'],
      legacyType: 'email',
      placeholder: 'you@example',
    },
    {
      id: 'password',
      question: 'q-password',
      ref: 'r2',
      type: 'password',
      key: 'password',
      label: 'Password',
      required: true,
      filled: false,
      selectors: ['#pw'],
      legacyType: 'password',
    },
  ],
  choices: [
    {
      id: 'google',
      question: 'q-google',
      ref: 'r3',
      type: 'sso_provider',
      label: 'Google',
      provider: 'google',
      selectors: ['#google'],
    },
    {
      id: 'sms',
      question: 'q-sms',
      ref: 'r4',
      type: 'mfa_method',
      label: 'Text me',
      description: 'At •• 42',
      mfaType: 'sms',
      target: '•• 42',
      selectors: ['#sms'],
    },
    { id: 'account-2', question: 'q-account-2', ref: 'r5', type: 'account', label: 'Bob', selectors: [] },
  ],
  ...changes,
});
