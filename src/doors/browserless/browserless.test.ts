import { describe, expect, test } from 'vitest';
import { wishOfBrowserless } from './connect-schema.ts';
import { inches, printing } from './paper.ts';
import { programOf, readOutcome } from './program.ts';

const wish = (query: string) => wishOfBrowserless(new URLSearchParams(query));

describe('the address of a client of the other service', () => {
  test('is a headless session unless it says otherwise', () => {
    expect(wish('')).toEqual({ request: { headless: true } });
    expect(wish('stealth&headless=false&timeout=60000&trackingId=job-1')).toEqual({
      request: { headless: false, stealth: true, tags: { tracking_id: 'job-1' } },
      mostMs: 60_000,
    });
  });

  test('has launch options in JSON or in base64', () => {
    const launch = { headless: false, stealth: true, defaultViewport: { width: 800, height: 600 } };
    const request = { headless: false, stealth: true, viewport: { width: 800, height: 600 } };
    const json = JSON.stringify(launch);
    for (const text of [json, Buffer.from(json).toString('base64')])
      expect(wish(new URLSearchParams({ launch: text }).toString())).toEqual({ request });
  });

  test.each([
    ['blockAds=true', 'blockAds is not available'],
    ['--proxy-server=x', '--proxy-server is not available'],
    ['launch={"args":["--x"]}', 'launch.args is not available'],
    ['launch={', 'launch is not JSON'],
    ['launch={"stealth":1}', 'launch.stealth must be true or false'],
    ['launch={"defaultViewport":{"width":1}}', 'launch.defaultViewport has a width'],
    ['stealth=yes', 'stealth must be true or false'],
    ['timeout=soon', 'timeout must be a number'],
    ['trackingId=%3Cx%3E', 'trackingId has at most'],
  ])('%s is refused', (query, message) => expect(() => wish(query)).toThrow(message));
});

describe('paper', () => {
  test('is measured in inches', () => {
    expect([96, '96', '96px', '1in', '2.54cm', '25.4mm'].map(inches)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test('has a format, or a width and a height', () => {
    expect(printing({})).toMatchObject({ paperWidth: 8.5, paperHeight: 11, printBackground: false, marginTop: 0 });
    expect(printing({ format: 'A4', margin: { top: '1in' } })).toMatchObject({ paperWidth: 8.2677, marginTop: 1 });
    expect(printing({ width: '10cm', height: 96 })).toMatchObject({ paperHeight: 1 });
    expect(() => printing({ format: 'constructor' })).toThrow('options.format');
  });
});

describe('a function', () => {
  const nothing = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  /** As the runner of a session runs it. */
  async function run(code: string, context?: unknown) {
    const body = programOf({ code, context });
    const work = (await import(
      `data:text/javascript,${encodeURIComponent(`export default async (page, browser) => {${body}}`)}`
    )) as { default: (page: unknown, browser: unknown) => Promise<unknown> };
    const result = Buffer.from(JSON.stringify(await work.default({ title: async () => 'A page' }, {})));
    return readOutcome({ success: true, result, ...nothing });
  }

  test('is a module with a default export, or sets module.exports', async () => {
    const json = { type: 'application/json; charset=utf-8', data: '{"title":"A page","n":1}' };
    const inner = 'return { data: { title: await page.title(), n: context.n } }';
    expect(await run(`export default async function ({ page, context }) { ${inner} }`, { n: 1 })).toEqual(json);
    expect(await run(`module.exports = async ({ page, context }) => { ${inner} };`, { n: 1 })).toEqual(json);
  });

  test('answers with text, bytes or JSON, under its own type', async () => {
    const returns = (value: string) => run(`export default async () => (${value});`);
    expect(await returns('{ data: "<p>", type: "text/html" }')).toEqual({ type: 'text/html', data: '<p>' });
    expect(await returns('{ data: new Uint8Array([1, 2]), type: "image/png" }')).toEqual({
      type: 'image/png',
      data: Buffer.from([1, 2]),
    });
    expect(await returns('{ data: "x", type: "text/html\\r\\nx: y" }')).toMatchObject({
      type: 'text/plain; charset=utf-8',
    });
    expect(await returns('5')).toMatchObject({ data: '5' });
    expect(await returns('undefined')).toMatchObject({ data: 'null' });
  });

  test('that fails is refused with its own words', async () => {
    await expect(run('export const other = 1;')).rejects.toThrow('no default export');
    await expect(readOutcome({ success: false, error: 'boom', ...nothing })).rejects.toThrow(
      'The code ended with an error: boom',
    );
  });
});
