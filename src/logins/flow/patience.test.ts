import { describe, expect, test } from 'vitest';
import { fast, good, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import { scriptedSite, type ScriptedPage } from '../../../test/support/logins/scripted-site.ts';
import { FormsError, type FlowBrowser } from './browser.ts';

const frozen = () => new FormsError('frozen', 'The page does not answer: it hangs.');

describe('a page that does not answer for a while', () => {
  /** Each of these calls fails the first times that it is made. */
  const hanging = (browser: FlowBrowser, times: Partial<Record<'snapshot' | 'state' | 'type' | 'click', number>>) => {
    const left = { ...times };
    const hangs = (name: keyof typeof times) => (left[name] ?? 0) > 0 && left[name]!-- > 0;
    return {
      ...browser,
      snapshot: async (pageId: string) => {
        if (hangs('snapshot')) throw frozen();
        return browser.snapshot(pageId);
      },
      state: async (pageId: string) => {
        if (hangs('state')) throw frozen();
        return browser.state(pageId);
      },
      async act(pageId: string, action: Parameters<FlowBrowser['act']>[1]) {
        // The page has taken the click, and computes.
        if (action.kind === 'click') await browser.act(pageId, action);
        if ((action.kind === 'type' || action.kind === 'click') && hangs(action.kind)) throw frozen();
        if (action.kind !== 'click') await browser.act(pageId, action);
      },
    } satisfies FlowBrowser;
  };

  test.each([
    ['while it is read', { snapshot: 3 }],
    ['when its cookies are asked for', { state: 2 }],
    ['while something is typed', { type: 2 }],
    ['after the form was sent', { click: 1 }],
  ])('%s is waited for', async (_name, times) => {
    const { browser, read, site } = scriptedSite(shop());
    const { outcome } = await run({ script: shop(), read, values: good, input: { browser: hanging(browser, times) } });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(site.submits).toHaveLength(1);
  });

  test('is given up when it answers nothing any more', async () => {
    const { browser, read } = scriptedSite(shop());
    const { outcome } = await run({
      script: shop(),
      read,
      values: good,
      input: { browser: hanging(browser, { snapshot: Infinity }) },
    });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'browser_error' });
  });
});

describe('a page whose form is still to come', () => {
  const late = (reading: ScriptedPage['reading']['kind'], more: Partial<ScriptedPage> = {}) => {
    const script = shop({
      soon: {
        url: `${origin}/login`,
        reading: { kind: reading },
        ...more,
        becomes: { name: 'login', after: 8 },
      },
    });
    const { route } = script;
    script.route = (url, site) => {
      const name = route(url, site);
      return name === 'login' && site.submits.length === 0
        ? /^https:\/\/shop.example\/(login)?$/.test(url)
          ? 'soon'
          : undefined
        : name;
    };
    return script;
  };

  test.each<[string, ScriptedPage['reading']['kind'], Partial<ScriptedPage>]>([
    ['is empty so far', 'blank', {}],
    ['asks its server', 'unknown', { requesting: true }],
  ])('is waited for when it %s', async (_name, kind, more) => {
    const { outcome, site } = await run({
      script: late(kind, more),
      values: good,
      input: { deadlines: { ...fast, coming: 20_000 } },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(site.log.filter((entry) => entry.startsWith('navigate'))).toEqual([`navigate ${origin}/`]);
  });

  test('is left for other addresses when nothing shows that it comes', async () => {
    const { site } = await run({
      script: late('unknown'),
      values: good,
      input: { deadlines: { ...fast, coming: 20_000 } },
    });
    expect(site.log).toContain(`navigate ${origin}/signin`);
  });
});
