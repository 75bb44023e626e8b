import { Type, type Static } from 'typebox';
import { named, oneOf } from '../../api/schema.ts';

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

export const CurlRequest = named(
  'BrowserCurlRequest',
  Type.Object(
    {
      url: Type.String({ maxLength: 65_536, description: 'http or https.' }),
      method: Type.Optional(oneOf(methods, { default: 'GET' })),
      headers: Type.Optional(
        Type.Unsafe<Record<string, string>>({
          type: 'object',
          maxProperties: 1000,
          additionalProperties: { type: 'string' },
          description:
            'Sent in addition to the headers of the browser. A Cookie header replaces the cookies of the browser for this request.',
        }),
      ),
      body: Type.Optional(Type.String()),
      timeout_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 60_000, default: 30_000 })),
      response_encoding: Type.Optional(
        oneOf(['utf8', 'base64'], {
          default: 'utf8',
          description: 'The encoding of the body of the answer in JSON; base64 for a body that is not text.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
);

export const CurlResult = named(
  'BrowserCurlResult',
  Type.Object(
    {
      status: Type.Integer({ description: 'Of the last answer, after redirects.' }),
      headers: Type.Unsafe<Record<string, string[]>>({
        type: 'object',
        additionalProperties: { type: 'array', items: { type: 'string' } },
        description: 'Names in lower case, every value of a name.',
      }),
      body: Type.String({ description: 'Decompressed, up to 32 MiB; /curl/raw below base_url has no bound.' }),
      duration_ms: Type.Integer(),
    },
    { additionalProperties: false },
  ),
);

export const CurlTransportError = named(
  'BrowserCurlTransportError',
  Type.Object({
    code: Type.Optional(Type.String()),
    message: Type.String(),
    net_error: Type.Optional(Type.Integer({ description: 'Chromium’s number for the network error.' })),
    net_error_name: Type.Optional(
      Type.String({ description: 'The name of the network error, such as ERR_CONNECTION_REFUSED.' }),
    ),
  }),
);

export const RawQuery = Type.Object({
  url: Type.String({ maxLength: 65_536 }),
  timeout_ms: Type.Integer({ minimum: 1000, maximum: 60_000, default: 30_000 }),
});

export type CurlRequest = Static<typeof CurlRequest>;
export type CurlResult = Static<typeof CurlResult>;
