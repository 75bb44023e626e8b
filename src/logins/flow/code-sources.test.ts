import { describe, expect, test } from 'vitest';
import { error, good, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import {
  choice,
  field,
  submit,
  type ScriptedPage,
  type SiteState,
} from '../../../test/support/logins/scripted-site.ts';
import type { InputWanted } from './types.ts';

const codePage = (label: string, next: (code: string, site: SiteState) => string): ScriptedPage => ({
  url: `${origin}/code`,
  reading: { kind: 'code', fields: [field('code', 'code', { label })], submit },
  click: { submit: (site) => next(site.values.get('code') ?? '', site) },
});
const byMail = 'Code from the email';

/** A flow whose input is these codes, one for each time that the sources may be asked, and what it wanted. */
async function withCodes(page: ScriptedPage, codes: string[], more: Partial<Parameters<typeof run>[0]> = {}) {
  const wanted: InputWanted[] = [];
  const began = Date.now();
  const queue = [...codes];
  const result = await run({
    script: shop({ code: page }, () => 'code'),
    values: good,
    codeSources: ['imap'],
    ...more,
    input: {
      ...more.input,
      input(one) {
        wanted.push(one);
        const code = one.sentAt === undefined ? undefined : queue.shift();
        if (code !== undefined) return Promise.resolve({ code, fromSource: true });
        return new Promise((_resolve, reject) => {
          one.signal.addEventListener('abort', () => reject(one.signal.reason as Error));
        });
      },
    },
  });
  return { ...result, wanted, began };
}

describe('a login with a source of codes', () => {
  test('asks it for codes since the last form was sent, and says so to people', async () => {
    const { outcome, wanted, began, reports, acceptedCodes } = await withCodes(
      codePage(byMail, () => 'home'),
      ['424242'],
    );
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: {}, requirements: { codes: ['email'] } });
    expect(wanted).toMatchObject([{ codes: true, sentAt: expect.any(Number) }]);
    expect(wanted[0]!.sentAt).toBeGreaterThanOrEqual(began);
    expect(acceptedCodes).toEqual(['424242']);
    const asked = reports.find(({ step }) => step === 'AWAITING_INPUT');
    expect(asked?.externalActionMessage).toContain('looks for this code by itself');
  });

  test('needs no secret of an app where the page does not say how its code comes', async () => {
    const { outcome } = await withCodes(
      codePage('Code', () => 'home'),
      ['424242'],
    );
    expect(outcome).toMatchObject({ status: 'SUCCESS', requirements: { codes: ['other'], totp: false } });
  });

  test('takes another code if the site refuses the first', async () => {
    const page = codePage(byMail, (code) => (code === '434343' ? 'home' : 'wrong'));
    const wrong = { ...page, reading: { ...page.reading, error: error('Wrong code', 'code') } };
    const { outcome, wanted, acceptedCodes, site } = await withCodes(page, ['424242', '434343'], {
      script: shop({ code: page, wrong }, () => 'code'),
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(site.submits.flatMap((one) => one['code'] ?? [])).toEqual(['424242', '434343']);
    expect(wanted[1]!.sentAt).toBeGreaterThan(wanted[0]!.sentAt!);
    expect(acceptedCodes).toEqual(['434343']);
  });

  test('does not ask it for codes of an authenticator app, nor without a source', async () => {
    const app = codePage('Code of your app', () => 'home');
    app.reading.fields = [field('totp_code', 'code')];
    for (const [page, codeSources] of [
      [app, ['imap']],
      [codePage(byMail, () => 'home'), []],
    ] as const) {
      const { outcome, wanted, reports } = await withCodes(page, ['424242'], { codeSources });
      expect(outcome).toMatchObject({ status: 'EXPIRED', errorCode: 'awaiting_input_timeout' });
      expect(wanted).toMatchObject([{ codes: true, sentAt: undefined }]);
      expect(reports.every(({ externalActionMessage }) => externalActionMessage === undefined)).toBe(true);
    }
  });

  test.each([
    [['imap'], 'mail'],
    [['webhook'], 'sms'],
  ] as const)('with %s chooses the way to a code by %s', async (codeSources, way) => {
    const ways: ScriptedPage = {
      url: `${origin}/ways`,
      reading: {
        kind: 'choice',
        choices: [
          choice('mfa_method', 'sms', { mfaType: 'sms', label: 'Text message' }),
          choice('mfa_method', 'mail', { mfaType: 'email', label: 'Email' }),
        ],
      },
      click: { sms: () => 'sms', mail: () => 'mail' },
    };
    const script = shop(
      { ways, sms: codePage('Code from the SMS', () => 'home'), mail: codePage(byMail, () => 'home') },
      () => 'ways',
    );
    const { outcome } = await withCodes(ways, ['424242'], { script, codeSources });
    expect(outcome).toMatchObject({ status: 'SUCCESS', requirements: { codes: [way === 'mail' ? 'email' : 'sms'] } });
  });
});
