import { describe, expect, test } from 'vitest';
import { loginState } from '../../test/support/logins/states.ts';
import { askedOf } from './answer.ts';
import { submittedTo } from './submit.ts';

const state = loginState();
const password = { fieldValues: { password: 'p' }, questions: ['q-password'] };
const mail = { fieldValues: { identifier: 'a@b.c' }, questions: ['q-identifier'] };
const chosen = (id: string) => ({ choiceId: id, questions: [`q-${id}`] });

describe('a submit', () => {
  test.each([
    ['by the id of a field', { field_values: { password: 'p' } }, password],
    ['by the name of a discovered field', { fields: { password: 'p' } }, password],
    ['by the name that a credential has', { fields: { email: 'a@b.c' } }, mail],
    ['in both forms', { field_values: { password: 'p' }, fields: { password: 'q' } }, password],
    ['by the id of a choice', { selected_choice_id: 'sms' }, chosen('sms')],
    ['by the kind of a second factor', { mfa_option_id: 'sms' }, chosen('sms')],
    ['by a provider', { sso_provider: 'google' }, chosen('google')],
    ['by the selector of a button', { sso_button_selector: '#google' }, chosen('google')],
    ['by a sign-in option', { sign_in_option_id: 'account-2' }, chosen('account-2')],
    [
      'of fields and a choice',
      { field_values: { password: 'p' }, selected_choice_id: 'sms' },
      { ...password, choiceId: 'sms', questions: ['q-password', 'q-sms'] },
    ],
  ])('%s', (_, request, submitted) => {
    expect(submittedTo(state, request)).toEqual(submitted);
  });

  test.each([
    ['nothing', {}, 'invalid_input'],
    ['half a character', { field_values: { password: 'p\ud83d' } }, 'invalid_input'],
    ['half a character by a name', { fields: { password: '\ude00p' } }, 'invalid_input'],
    ['two choices', { sso_provider: 'google', mfa_option_id: 'sms' }, 'invalid_input'],
    ['a field that is not there', { field_values: { pin: '1' } }, 'flow_not_waiting'],
    ['a name that is not there', { fields: { pin: '1' } }, 'flow_not_waiting'],
    ['a choice that is not there', { selected_choice_id: 'call' }, 'flow_not_waiting'],
    ['a provider that is not there', { sso_provider: 'github' }, 'flow_not_waiting'],
  ])('of %s is refused', (_, request, code) => {
    expect(() => submittedTo(state, request)).toThrow(expect.objectContaining({ code }));
  });
});

test('what a page asks for is shown in the canonical form and in the four older ones', () => {
  expect(askedOf(state.fields, state.choices)).toEqual({
    fields: [
      { id: 'identifier', ref: 'r1', type: 'identifier', label: 'Mail', required: true, observed_selector: '#mail' },
      { id: 'password', ref: 'r2', type: 'password', label: 'Password', required: true, observed_selector: '#pw' },
    ],
    choices: [
      { id: 'google', type: 'sso_provider', label: 'Google', description: null, observed_selector: '#google' },
      { id: 'sms', type: 'mfa_method', label: 'Text me', description: 'At •• 42', observed_selector: '#sms' },
      { id: 'account-2', type: 'account', label: 'Bob', description: null, observed_selector: null },
    ],
    discovered_fields: [
      {
        name: 'identifier',
        type: 'email',
        label: 'Mail',
        selector: '#mail',
        required: true,
        placeholder: 'you@example',
      },
      { name: 'password', type: 'password', label: 'Password', selector: '#pw', required: true },
    ],
    mfa_options: [{ type: 'sms', label: 'Text me', target: '•• 42', description: 'At •• 42' }],
    sign_in_options: [{ id: 'account-2', label: 'Bob', description: null }],
    pending_sso_buttons: [{ selector: '#google', provider: 'google', label: 'Google' }],
  });
});
