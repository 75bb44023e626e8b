import { expect, test } from 'vitest';
import { button, form, heading, input, link, snapshot, words } from '../../../test/support/logins/snapshot.ts';
import { read } from './read.ts';

const context = { domain: 'shop.example' };
const enrolment = [
  heading('Set up your authenticator'),
  words('Scan the QR code or enter this key: JBSW Y3DP EHPK 3PXP'),
  form([input('Code from the app', { inputmode: 'numeric' }), button('Activate')]),
];

test('a page with a secret that can be skipped names the secret, so that it is not recorded', () => {
  const page = snapshot([...enrolment, link('Remind me later', '/home')]);
  expect(read(page, context)).toMatchObject({ kind: 'interstitial', totpSecret: expect.stringContaining('JBSW') });
});

test('the secret of an enrolment is in its own place and in no evidence', () => {
  const reading = read(snapshot(enrolment), context);
  expect(reading.totpSecret).toBe('JBSW Y3DP EHPK 3PXP');
  expect(JSON.stringify(reading.evidence)).not.toContain('JBSW');
});
