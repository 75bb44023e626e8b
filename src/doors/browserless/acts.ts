import { errors } from '../../errors.ts';
import { fromBase64 } from '../../lib/base64.ts';
import { anyText, list, number, object } from '../../lib/shape.ts';
import { arriveAt, asRefusal, prepare, selectorIn, type Page, type ReadPage } from './page.ts';
import { printing } from './paper.ts';
import type { Common, PdfBody, PdfOptions, ScrapeBody, ScreenshotBody } from './schema.ts';

const MOST_TEXT = 32_000_000;
/** The most bytes of all that is scraped for one request. */
const MOST_SCRAPED = 16_000_000;
/** Chromium draws no picture that is larger. */
const MOST_PIXELS = 16_384;

const isData = object({ data: anyText });
const isSize = object({ cssContentSize: object({ width: number(0, 1e9), height: number(0, 1e9) }) });
const isRect = object({
  x: number(-1e9, 1e9),
  y: number(-1e9, 1e9),
  width: number(0, 1e9),
  height: number(0, 1e9),
});
const isScraped = list(
  object({
    attributes: list(object({ name: anyText, value: anyText })),
    html: anyText,
    text: anyText,
    top: number(-1e9, 1e9),
    left: number(-1e9, 1e9),
    width: number(0, 1e9),
    height: number(0, 1e9),
  }),
);

export async function open(page: Page, body: Common): Promise<void> {
  await prepare(page, body);
  await arriveAt(page, body);
}

export async function content(page: ReadPage, body: Common): Promise<string> {
  await open(page, body);
  return readContent(page);
}

/** The document as it is now, with its doctype. */
export async function readContent(page: ReadPage): Promise<string> {
  const html = await page.evaluate(`(() => {
    const parts = Array.from(document.childNodes, (node) =>
      node === document.documentElement ? node.outerHTML : new XMLSerializer().serializeToString(node));
    return parts.join('').slice(0, ${MOST_TEXT});
  })()`);
  if (typeof html !== 'string') return '';
  await page.room.add(html.length);
  return html;
}

export async function screenshot(page: ReadPage, body: ScreenshotBody): Promise<{ data: Buffer; type: string }> {
  await open(page, body);
  return capture(page, body);
}

/** A picture of the page as it is now. */
export async function capture(page: ReadPage, body: ScreenshotBody): Promise<{ data: Buffer; type: string }> {
  const { client, sessionId } = page;
  const { type: format = 'png', quality, fullPage, omitBackground, optimizeForSpeed, ...options } = body.options ?? {};
  if (quality !== undefined && format === 'png')
    throw errors.invalid_input({
      detail: 'options.quality is for jpeg and webp; leave it out, or choose one of them.',
    });
  if (fullPage && options.clip)
    throw errors.invalid_input({ detail: 'options.fullPage and options.clip exclude each other; leave one out.' });
  if (body.scrollPage) await page.evaluate(scrolling);
  const clip = await clipOf(page, body);
  if (omitBackground)
    await client.send('Emulation.setDefaultBackgroundColorOverride', { color: { r: 0, g: 0, b: 0, a: 0 } }, sessionId);
  const { data } = await client.ask(
    isData,
    'Page.captureScreenshot',
    {
      format,
      ...(quality === undefined ? {} : { quality }),
      ...(optimizeForSpeed === undefined ? {} : { optimizeForSpeed }),
      ...(clip ? { clip, captureBeyondViewport: options.captureBeyondViewport ?? true } : {}),
    },
    sessionId,
    { patient: true },
  );
  await page.room.add(data.length);
  return { data: await fromBase64(data), type: `image/${format}` };
}

async function clipOf(page: Page, { selector, options = {} }: ScreenshotBody) {
  if (options.clip) return { scale: 1, ...options.clip };
  if (selector !== undefined) {
    await selectorIn(page, { selector });
    const rect = await page.evaluate(`(() => {
      const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
      return { x: x + scrollX, y: y + scrollY, width, height };
    })()`);
    if (!isRect(rect) || rect.width === 0 || rect.height === 0)
      throw errors.page_not_loaded({ detail: 'The element of selector has no size that could be shown.' });
    return { ...bounded(rect), scale: 1 };
  }
  if (!options.fullPage) return undefined;
  const { cssContentSize } = await page.client.ask(isSize, 'Page.getLayoutMetrics', {}, page.sessionId);
  return { x: 0, y: 0, ...bounded(cssContentSize), scale: 1 };
}

const bounded = <S extends { width: number; height: number }>(size: S): S => ({
  ...size,
  width: Math.min(size.width, MOST_PIXELS),
  height: Math.min(size.height, MOST_PIXELS),
});

/** Scrolls to the end and back, so that lazy content is loaded. */
const scrolling = `new Promise((done) => {
  let steps = 0;
  const step = () => {
    const before = scrollY;
    scrollBy(0, innerHeight);
    if (++steps < 100 && scrollY > before) setTimeout(step, 50);
    else { scrollTo(0, 0); done(0); }
  };
  step();
})`;

export async function pdf(page: ReadPage, body: PdfBody): Promise<Buffer> {
  printing(body.options ?? {}); // refused before the page is opened
  await open(page, body);
  return print(page, body.options ?? {});
}

/** The page as it is now, on paper. */
export async function print(page: ReadPage, given: PdfOptions): Promise<Buffer> {
  const { client, sessionId } = page;
  if (given.omitBackground)
    await client.send('Emulation.setDefaultBackgroundColorOverride', { color: { r: 0, g: 0, b: 0, a: 0 } }, sessionId);
  const { data } = await client
    .ask(isData, 'Page.printToPDF', printing(given), sessionId, { patient: true })
    .catch(asRefusal('options'));
  await page.room.add(data.length);
  return fromBase64(data);
}

/**
 * Every element of each selector, with its text, its attributes and its place, as JSON in parts. Each part is written when it is read: a
 * hundred selectors for the same large element were 200 MB, and stopped the service for a second.
 */
export async function scrape(page: ReadPage, body: ScrapeBody): Promise<Buffer[]> {
  await open(page, body);
  const parts = [Buffer.from('{"data":[')];
  let bytes = 0;
  for (const { selector, timeout } of body.elements) {
    await selectorIn(page, { selector, ...(timeout === undefined ? {} : { timeout }) });
    const results = await page.evaluate(`(() => {
      let left = ${MOST_TEXT / 4};
      const cut = (text) => { const part = text.slice(0, Math.max(0, left)); left -= part.length; return part; };
      return Array.from(document.querySelectorAll(${JSON.stringify(selector)})).slice(0, 10_000).map((element) => {
        const { top, left: x, width, height } = element.getBoundingClientRect();
        return {
          attributes: Array.from(element.attributes, ({ name, value }) => ({ name: cut(name), value: cut(value) })),
          html: cut(element.innerHTML), text: cut(element.innerText ?? element.textContent ?? ''),
          top, left: x, width, height,
        };
      });
    })()`);
    if (!isScraped(results)) throw errors.page_not_loaded({ detail: 'The page answered with something else.' });
    const part = Buffer.from(`${bytes === 0 ? '' : ','}${JSON.stringify({ selector, results })}`);
    bytes += part.length;
    if (bytes > MOST_SCRAPED) throw errors.result_too_large({ megabytes: MOST_SCRAPED / 1e6 });
    parts.push(part);
    await page.room.add(part.length);
  }
  return [...parts, Buffer.from(']}')];
}
