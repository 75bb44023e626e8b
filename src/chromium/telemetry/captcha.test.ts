import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { captchaEvents, widgetAt } from './captcha.ts';
import type { Target, NewEvent } from './target.ts';
import type { Watch } from './watch.ts';

interface Look {
  solved?: boolean;
  focused?: boolean;
  version?: 'v2' | 'v3';
  outcome?: { status: 'failure' | 'timeout' | 'abandoned'; code: string };
}

const addresses = {
  hcaptcha: 'https://newassets.hcaptcha.com/captcha/v1/abc/static/hcaptcha.html#frame=checkbox&id=0',
  recaptcha_v2: 'https://www.google.com/recaptcha/api2/anchor?ar=1&k=key',
  turnstile: 'https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/rcv/abc',
};
type Kind = keyof typeof addresses;

/** A page with one widget, at which these looks are taken, one after the other. The look after them gets no answer. */
async function pageWith(kind: Kind, looks: Look[], { fresh = true, patienceMs = 120_000 } = {}) {
  const events: NewEvent[] = [];
  const left = [...looks];
  const page = { url: 'https://shop.test/login?next=/', sessionId: 'S', fresh, navSeq: fresh ? 1 : 0 } as Target;
  const ask = async (_is: unknown, method: string) => {
    await setImmediate();
    if (method === 'Page.createIsolatedWorld') return { executionContextId: 1 };
    const next = left.shift();
    if (!next) return new Promise<never>(() => {});
    return { result: { value: { solved: false, focused: false, version: 'v2', ...next } } };
  };
  const watch = { client: { ask }, emit: (one: NewEvent) => void events.push(one), world: 'w', captures: () => true };
  const captcha = captchaEvents(watch as unknown as Watch, { patienceMs });
  captcha.framed({ id: 'F', url: addresses[kind] }, page, 'P');
  // Each look takes two turns; what follows it is done in the next one.
  for (let turn = 0; turn < 2 * looks.length + 2; turn++) await setImmediate();
  return { captcha, page, outcomes: () => events.map(({ data }) => data) };
}

const result = (kind: string, status: string, more = {}) => ({
  captcha_type: kind,
  status,
  duration_ms: expect.any(Number),
  website_host: 'shop.test',
  website_path: '/login',
  ...more,
});

test('of a long address only the beginning is looked at', () => {
  expect(widgetAt(`https://newassets.hcaptcha.com/captcha/${'x'.repeat(10_000)}`)).toMatchObject({ kind: 'hcaptcha' });
  expect(widgetAt(`https://newassets.hcaptcha.com/${'x'.repeat(10_000)}/captcha/`)).toBeUndefined();
});

describe.each(Object.keys(addresses) as Kind[])('a %s widget', (kind) => {
  test('with an answer was solved, once', async () => {
    const { outcomes, captcha } = await pageWith(kind, [{}, { focused: true }, { solved: true }]);
    captcha.frameGone('F');
    expect(outcomes()).toEqual([result(kind, 'success')]);
  });

  test('that was not touched reports nothing when its page is left', async () => {
    const { outcomes, captcha, page } = await pageWith(kind, [{}, {}]);
    captcha.navigated(page, 'https://other.test/');
    // Turnstile begins by itself: to leave it is to leave an attempt.
    expect(outcomes()).toEqual(kind === 'turnstile' ? [result(kind, 'abandoned')] : []);
  });

  test('that is being solved is abandoned when it goes away', async () => {
    const { outcomes, captcha } = await pageWith(kind, [{ focused: true }]);
    captcha.frameGone('F');
    expect(outcomes()).toEqual([result(kind, 'abandoned')]);
  });

  test('that is being solved reports nothing when its page navigates within the site: it may have been solved', async () => {
    const { outcomes, captcha, page } = await pageWith(kind, [{ focused: true }]);
    captcha.navigated(page, 'https://shop.test/welcome');
    expect(outcomes()).toEqual([]);
  });

  test('that nothing comes of has timed out', async () => {
    const { outcomes } = await pageWith(kind, [{ focused: true }], { patienceMs: -1 });
    expect(outcomes()).toEqual([result(kind, 'timeout')]);
  });

  test('that is not loaded has failed', async () => {
    const { outcomes, captcha, page } = await pageWith(kind, [{}]);
    captcha.framed({ id: 'F', url: 'chrome-error://chromewebdata/' }, page, 'P');
    expect(outcomes()).toEqual([result(kind, 'failure', { error_code: 'widget_not_loaded' })]);
  });

  test('that had its answer before the capture began was not seen to be solved', async () => {
    const { outcomes } = await pageWith(kind, [{ solved: true }], { fresh: false });
    expect(outcomes()).toEqual([]);
  });
});

test('the attempts that a widget reports are captured, and the next attempt can succeed', async () => {
  const { outcomes } = await pageWith('turnstile', [
    { outcome: { status: 'failure', code: '300030' } },
    { outcome: { status: 'timeout', code: 'interactiveTimeout' } },
    { solved: true },
  ]);
  expect(outcomes()).toEqual([
    result('turnstile', 'failure', { error_code: '300030' }),
    result('turnstile', 'timeout'),
    result('turnstile', 'success'),
  ]);
});

test('the answer of an invisible reCAPTCHA is one of version 3', async () => {
  const { outcomes } = await pageWith('recaptcha_v2', [{ solved: true, version: 'v3' }]);
  expect(outcomes()).toEqual([result('recaptcha_v3', 'success')]);
});
