import { Type, type Static } from 'typebox';
import { named, oneOf } from '../api/schema.ts';
import { eventSchemas } from '../lib/telemetry-events.ts';
import { telemetryCategories, type TelemetryCategory } from '../lib/telemetry.ts';
import { defaultSet } from './capture.ts';

const { Integer, Boolean, String: Text, Optional, Object: Shape, Array: List } = Type;

// Configuration

const Category = named('BrowserTelemetryCategoryConfig', Shape({ enabled: Optional(Boolean()) }));

/** A category that does not exist is refused rather than ignored: a client that captures nothing by a typing error would notice too late. */
const Categories = named(
  'BrowserTelemetryCategoriesConfig',
  Type.Unsafe<{ [C in TelemetryCategory]?: { enabled?: boolean } }>(
    Shape(Object.fromEntries(telemetryCategories.map((name) => [name, Optional(Category)])), {
      additionalProperties: false,
      description: 'The defaults of categories that are left out are in docs/telemetry.md.',
    }),
  ),
);

export const TelemetryRequest = named(
  'BrowserTelemetryRequestConfig',
  Shape(
    {
      enabled: Optional(
        Boolean({
          description: `true captures ${[...defaultSet].join(', ')} and the categories of \`browser\`. false captures nothing.`,
        }),
      ),
      browser: Optional(Categories),
    },
    { additionalProperties: false },
  ),
);

export const Telemetry = named('BrowserTelemetryConfig', Shape({ browser: Optional(Categories) }));

// Events

export const TelemetryEnvelope = named(
  'BrowserTelemetryEventEnvelope',
  Shape({
    seq: Integer({ minimum: 1, description: 'Rises by session; a gap means that events were lost.' }),
    event: named(
      'BrowserTelemetryEvent',
      Type.Unsafe<unknown>({ oneOf: eventSchemas, discriminator: { propertyName: 'type' } }),
    ),
  }),
);

// Reading

export const StreamQuery = Shape({
  replay: Optional(
    Text({
      maxLength: 16,
      description: '`all` starts with the oldest of the last 1,024 events; otherwise the stream starts now.',
    }),
  ),
});

export const StreamHeaders = Shape({
  'Last-Event-ID': Optional(
    Text({ maxLength: 32, description: 'Continues after the event with this `seq`. Takes precedence over `replay`.' }),
  ),
});

export const EventsQuery = Shape({
  limit: Integer({ minimum: 1, maximum: 100, default: 20, description: 'The maximum number of entries.' }),
  offset: Optional(
    Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'X-Next-Offset of the previous page of the same session. `since` is then ignored.',
    }),
  ),
  since: Optional(
    Text({
      maxLength: 64,
      description: 'A time such as 2026-01-31T12:00:00Z, or a duration such as 5m; 5m when left out.',
    }),
  ),
  until: Optional(Text({ maxLength: 64, description: 'A time; events at it and later are left out.' })),
  category: Optional(
    List(oneOf([...telemetryCategories, 'monitor']), {
      maxItems: 20,
      description: 'Only these. A page may be empty although there are more.',
    }),
  ),
  order: Optional(
    oneOf(['asc', 'desc'], {
      default: 'asc',
      description: 'desc starts with the newest, and does not accept `since`.',
    }),
  ),
});

export type EventsQuery = Static<typeof EventsQuery>;
