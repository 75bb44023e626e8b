import { Type, type Static, type TProperties } from 'typebox';
import { oneOf } from '../../api/schema.ts';
import { idleBounds } from '../../sessions/schema.ts';

/** The bodies of the other service, in its own spelling. Fields that are not listed are refused, because they have an effect there. */
const shape = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const maybe = Type.Optional;
const flag = maybe(Type.Boolean());
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const pixels = Type.Integer({ minimum: 1, maximum: 8192 });
/** Of any shape: options.ts reads it, or refuses it by its name. */
const anything = maybe(Type.Unsafe<unknown>({}));

export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const Uuid = Type.String({ pattern: uuid.source.replaceAll('a-f', 'a-fA-F') });

/** A cookie as `GET …/context` returns it. `size`, `session` and `sameParty` follow from the rest and are not set. */
const Cookie = shape({
  name: text(4096),
  value: Type.String({ maxLength: 8192 }),
  domain: maybe(text(255)),
  url: maybe(text(8192)),
  path: maybe(text(2048)),
  expires: maybe(Type.Number()),
  httpOnly: flag,
  secure: flag,
  session: flag,
  sameParty: flag,
  size: maybe(Type.Number()),
  sameSite: maybe(oneOf(['Strict', 'Lax', 'None'])),
  priority: maybe(oneOf(['Low', 'Medium', 'High'])),
  sourceScheme: maybe(oneOf(['Unset', 'NonSecure', 'Secure'])),
  sourcePort: maybe(Type.Integer({ minimum: -1, maximum: 65_535 })),
  partitionKey: maybe(shape({ topLevelSite: text(2048), hasCrossSiteAncestor: Type.Boolean() })),
});

/** Items by the domain (for https), or by the whole origin. */
const Items = Type.Unsafe<Record<string, Record<string, string>>>({
  type: 'object',
  maxProperties: 100,
  additionalProperties: { type: 'object', maxProperties: 10_000, additionalProperties: { type: 'string' } },
});

export const SessionContext = shape({
  cookies: maybe(Type.Array(Cookie, { maxItems: 5000 })),
  localStorage: maybe(Items),
  sessionStorage: maybe(Items),
  indexedDB: anything,
});

export const CreateBody = shape({
  sessionId: maybe(Uuid),
  dimensions: maybe(shape({ width: pixels, height: pixels })),
  headless: flag,
  timeout: maybe(Type.Integer({ minimum: idleBounds.minimum * 1000, maximum: idleBounds.maximum * 1000 })),
  proxyUrl: maybe(text(4096)),
  useProxy: anything,
  profileId: maybe(text(255)),
  persistProfile: flag,
  extensionIds: maybe(Type.Array(text(255), { maxItems: 20 })),
  sessionContext: maybe(SessionContext),
  stealthConfig: maybe(shape({ skipFingerprintInjection: flag, humanizeInteractions: flag, autoCaptchaSolving: flag })),
  debugConfig: maybe(shape({ interactive: flag, systemCursor: flag })),
  deviceConfig: maybe(shape({ device: maybe(oneOf(['desktop', 'mobile'])) })),
  blockAds: anything,
  concurrency: anything,
  credentials: anything,
  experimentalFeatures: anything,
  isSelenium: anything,
  namespace: anything,
  optimizeBandwidth: anything,
  region: anything,
  solveCaptcha: anything,
  userAgent: anything,
});

const key = { apiKey: maybe(Type.String({ maxLength: 1024 })) };
export const Query = shape(key);

export const statuses = ['live', 'released', 'failed'] as const;
export const ListQuery = shape({
  ...key,
  cursorId: maybe(text(255)),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  status: maybe(oneOf(statuses)),
});

/** Releasing takes no options. */
export const ReleaseBody = shape({});

const action = {
  url: text(8192),
  delay: maybe(Type.Integer({ minimum: 0, maximum: 300_000 })),
  region: anything,
  useProxy: anything,
};
export const ScreenshotBody = shape({ ...action, fullPage: flag });
export const PdfBody = shape(action);
export const ScrapeBody = shape({
  ...action,
  format: maybe(Type.Array(oneOf(['html', 'cleaned_html', 'markdown', 'readability']), { maxItems: 4 })),
  screenshot: flag,
  pdf: flag,
});

export type CreateBody = Static<typeof CreateBody>;
export type SessionContext = Static<typeof SessionContext>;
export type ListQuery = Static<typeof ListQuery>;
export type ScreenshotBody = Static<typeof ScreenshotBody>;
export type PdfBody = Static<typeof PdfBody>;
export type ScrapeBody = Static<typeof ScrapeBody>;
