import { expect, test } from 'vitest';
import { error, good, login, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import { field, type Script } from '../../../test/support/logins/scripted-site.ts';
import type { TotpCode } from '../../credentials/totp.ts';

const totp = async (): Promise<TotpCode> => ({ code: '424242', counter: 1, expiresAt: new Date(Date.now() + 60_000) });
const code = field('totp_code', 'code');

/** A form that asks for a code beside name and password after the first submit, and forgets that when the name is edited. */
function growing(): Script {
  const script = shop();
  const page = script.pages['login']!;
  const { fields } = login;
  page.click = {
    submit(site) {
      if (site.values.get('code') === '424242') return (site.cookies.set('s', '1'), 'home');
      // The page says it in a text that looks like an error.
      page.reading = { ...page.reading, fields: [...fields, code], error: error('Enter your code.', 'other') };
    },
  };
  page.type = {
    username: () => void (page.reading = { kind: 'login', ...login }),
    code(site) {
      if (!page.reading.fields!.includes(code)) site.log.push('typed a code nowhere');
    },
  };
  script.route = (url, { submits }) => (submits.some((one) => one['code'] === '424242') ? 'home' : 'login');
  return script;
}

test('a field that comes up in the form is filled beside those that hold their values', async () => {
  const { outcome, site } = await run({ script: growing(), values: good, totp });
  expect(outcome).toMatchObject({ status: 'SUCCESS', requirements: { totp: true } });
  expect(site.submits).toEqual([good, { ...good, code: '424242' }]);
  expect(site.log).not.toContain('typed a code nowhere');
});
