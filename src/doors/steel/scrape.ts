import { errors } from '../../errors.ts';
import { base64Parts } from '../../lib/base64.ts';
import { anyText, list, object, record } from '../../lib/shape.ts';
import { capture, open, print, readContent } from '../browserless/acts.ts';
import type { ReadPage } from '../browserless/page.ts';
import type { ScrapeBody } from './schema.ts';

const isFacts = object({ links: list(object({ url: anyText, text: anyText })), metadata: record });

/** Links and metadata of the page. Missing values are left out. */
const READ_FACTS = `(() => {
  const cut = (text, most = 2000) => (text ? String(text).trim().slice(0, most) || undefined : undefined);
  const meta = (name) => cut(document.querySelector('meta[name="' + name + '"], meta[property="' + name + '"]')?.content);
  const link = (rel) => cut(document.querySelector('link[rel~="' + rel + '"]')?.href);
  const jsonLd = Array.from(document.querySelectorAll('script[type="application/ld+json"]')).slice(0, 20).flatMap((one) => {
    try { return [JSON.parse(one.textContent)]; } catch { return []; }
  });
  return {
    links: Array.from(document.links).slice(0, 10_000).map((one) => ({ url: one.href.slice(0, 8192), text: cut(one.innerText) ?? '' })),
    metadata: {
      title: cut(document.title), language: cut(document.documentElement.lang), urlSource: location.href,
      description: meta('description'), keywords: meta('keywords'), author: meta('author'),
      ogTitle: meta('og:title'), ogDescription: meta('og:description'), ogImage: meta('og:image'), ogUrl: meta('og:url'),
      ogSiteName: meta('og:site_name'), articleAuthor: meta('article:author'),
      publishedTime: meta('article:published_time'), modifiedTime: meta('article:modified_time'),
      canonical: link('canonical'), favicon: link('icon'), ...(jsonLd.length > 0 ? { jsonLd } : {}),
      statusCode: performance.getEntriesByType('navigation')[0]?.responseStatus || 200,
    },
  };
})()`;

/** A picture or a document as an address, as JSON in parts: 60 MB at once took most of a second. */
export async function asDataUrl(type: string, data: Buffer): Promise<Buffer[]> {
  const parts: Buffer[] = [Buffer.from(`{"url":"data:${type};base64,`)];
  for await (const part of base64Parts(data)) parts.push(part);
  return [...parts, Buffer.from('"}')];
}

/** The answer as JSON in parts. */
export async function scrape(
  page: ReadPage,
  { url, delay, screenshot = false, pdf = false }: ScrapeBody,
): Promise<Buffer[]> {
  await open(page, pageOf({ url, delay }));
  const html = await readContent(page);
  const facts = await page.evaluate(READ_FACTS);
  if (!isFacts(facts))
    throw errors.page_not_loaded({
      detail: 'The page changed the result of the script that reads its links and metadata.',
    });
  const picture = screenshot ? await capture(page, {}) : undefined;
  const metadata = { ...facts.metadata, timestamp: new Date().toISOString() };
  const texts = JSON.stringify({ content: { html }, links: facts.links, metadata });
  return [
    Buffer.from(texts.slice(0, -1)),
    ...(picture ? [Buffer.from(',"screenshot":'), ...(await asDataUrl(picture.type, picture.data))] : []),
    ...(pdf ? [Buffer.from(',"pdf":'), ...(await asDataUrl('application/pdf', await print(page, {})))] : []),
    Buffer.from('}'),
  ];
}

/** What all requests for one page have in common. */
export const pageOf = ({ url, delay }: { url: string; delay?: number | undefined }) => ({
  url,
  ...(delay === undefined ? {} : { waitForTimeout: delay }),
});
