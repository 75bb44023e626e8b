import { Type, type Static, type TProperties } from 'typebox';
import { oneOf } from '../../api/schema.ts';

/** The bodies of the other service, in its own spelling. Fields that are not listed are refused, because they have an effect there. */
const shape = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const maybe = Type.Optional;
const flag = maybe(Type.Boolean());
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const ms = maybe(Type.Integer({ minimum: 0, maximum: 300_000 }));
const pixels = Type.Integer({ minimum: 1, maximum: 8192 });
const Selector = text(2048);

const lifecycles = ['load', 'domcontentloaded', 'networkidle0', 'networkidle2'] as const;
const Lifecycle = oneOf(lifecycles);
export type Lifecycle = (typeof lifecycles)[number];

export const resourceTypes = {
  document: 'Document',
  stylesheet: 'Stylesheet',
  image: 'Image',
  media: 'Media',
  font: 'Font',
  script: 'Script',
  texttrack: 'TextTrack',
  xhr: 'XHR',
  fetch: 'Fetch',
  eventsource: 'EventSource',
  websocket: 'WebSocket',
  manifest: 'Manifest',
  ping: 'Ping',
  other: 'Other',
} as const;

const Tag = shape({ url: maybe(text(8192)), content: maybe(text(1_000_000)) });
const Cookie = shape({
  name: text(4096),
  value: Type.String({ maxLength: 8192 }),
  url: maybe(text(8192)),
  domain: maybe(text(255)),
  path: maybe(text(2048)),
  secure: flag,
  httpOnly: flag,
  sameSite: maybe(oneOf(['Strict', 'Lax', 'None'])),
  expires: maybe(Type.Number()),
});

const common = {
  url: maybe(text(8192)),
  html: maybe(text(5_000_000)),
  bestAttempt: flag,
  gotoOptions: maybe(
    shape({
      timeout: ms,
      referer: maybe(text(8192)),
      waitUntil: maybe(
        Type.Unsafe<Lifecycle | Lifecycle[]>({ anyOf: [Lifecycle, { type: 'array', items: Lifecycle, maxItems: 4 }] }),
      ),
    }),
  ),
  waitForTimeout: ms,
  waitForSelector: maybe(shape({ selector: Selector, hidden: flag, visible: flag, timeout: ms })),
  waitForFunction: maybe(shape({ fn: text(100_000), timeout: ms })),
  waitForEvent: maybe(shape({ event: text(255), timeout: ms })),
  viewport: maybe(
    shape({
      width: pixels,
      height: pixels,
      deviceScaleFactor: maybe(Type.Number({ minimum: 0.1, maximum: 4 })),
      isMobile: flag,
      hasTouch: flag,
    }),
  ),
  userAgent: maybe(text(1024)),
  setExtraHTTPHeaders: maybe(Type.Record(Type.String({ maxLength: 255 }), Type.String({ maxLength: 8192 }))),
  setJavaScriptEnabled: flag,
  cookies: maybe(Type.Array(Cookie, { maxItems: 300 })),
  rejectResourceTypes: maybe(
    Type.Array(oneOf(Object.keys(resourceTypes) as (keyof typeof resourceTypes)[]), { maxItems: 20 }),
  ),
  addScriptTag: maybe(Type.Array(Tag, { maxItems: 20 })),
  addStyleTag: maybe(Type.Array(Tag, { maxItems: 20 })),
  emulateMediaType: maybe(oneOf(['screen', 'print'])),
};

export const ContentBody = shape(common);

const coordinate = Type.Number({ minimum: 0, maximum: 16_384 });
const ScreenshotOptions = shape({
  type: maybe(oneOf(['png', 'jpeg', 'webp'])),
  quality: maybe(Type.Integer({ minimum: 0, maximum: 100 })),
  fullPage: flag,
  omitBackground: flag,
  encoding: maybe(oneOf(['binary', 'base64'])),
  captureBeyondViewport: flag,
  optimizeForSpeed: flag,
  clip: maybe(
    shape({
      x: coordinate,
      y: coordinate,
      width: coordinate,
      height: coordinate,
      scale: maybe(Type.Number({ minimum: 0.1, maximum: 4 })),
    }),
  ),
});
export const ScreenshotBody = shape({
  ...common,
  options: maybe(ScreenshotOptions),
  selector: maybe(Selector),
  scrollPage: flag,
});

const Length = Type.Unsafe<string | number>({
  anyOf: [
    { type: 'number', minimum: 0, maximum: 100_000 },
    { type: 'string', maxLength: 20, pattern: '^\\d{1,6}(\\.\\d{1,6})?(px|in|cm|mm)?$' },
  ],
});
const Template = maybe(Type.String({ maxLength: 100_000 }));
const PdfOptions = shape({
  format: maybe(text(10)),
  width: maybe(Length),
  height: maybe(Length),
  margin: maybe(shape({ top: maybe(Length), right: maybe(Length), bottom: maybe(Length), left: maybe(Length) })),
  landscape: flag,
  printBackground: flag,
  scale: maybe(Type.Number({ minimum: 0.1, maximum: 2 })),
  displayHeaderFooter: flag,
  headerTemplate: Template,
  footerTemplate: Template,
  pageRanges: maybe(Type.String({ maxLength: 255 })),
  preferCSSPageSize: flag,
  omitBackground: flag,
  tagged: flag,
  outline: flag,
});
export const PdfBody = shape({ ...common, options: maybe(PdfOptions) });

export const ScrapeBody = shape({
  ...common,
  elements: Type.Array(shape({ selector: Selector, timeout: ms }), { minItems: 1, maxItems: 100 }),
});

export const FunctionBody = shape({
  code: text(900_000),
  context: maybe(Type.Unsafe<unknown>({})),
});

export const Query = shape({
  token: maybe(Type.String({ maxLength: 1024 })),
  timeout: maybe(Type.Integer({ minimum: 1000, maximum: 300_000 })),
  stealth: flag,
  trackingId: maybe(Type.String({ maxLength: 256 })),
});

export type Common = Static<typeof ContentBody>;
export type ScreenshotBody = Static<typeof ScreenshotBody>;
export type PdfBody = Static<typeof PdfBody>;
export type ScrapeBody = Static<typeof ScrapeBody>;
export type FunctionBody = Static<typeof FunctionBody>;
export type Query = Static<typeof Query>;
export type PdfOptions = Static<typeof PdfOptions>;
