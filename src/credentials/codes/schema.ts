import { Type, type Static } from 'typebox';
import { named, oneOf } from '../../api/schema.ts';

const printable = '^[^\\u0000-\\u001f\\u007f]+$';
const Line = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: printable, description });
const securities = ['tls', 'starttls'] as const;
const Pattern = (what: string) =>
  Type.Optional(
    Line(255, `A part of ${what}. Case is ignored, and \`*\` matches any characters. Without it, every mail matches.`),
  );

/** The fields of type imap. Everything but the password and the certificates is returned. */
const mailbox = {
  host: Type.Optional(
    Line(255, 'Of type imap: the host of the server. Private addresses need `CORRAL_ALLOW_PRIVATE_HOSTS`.'),
  ),
  port: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_535, description: 'Default: 993 for `tls`, 143 for `starttls`.' }),
  ),
  security: Type.Optional(
    oneOf(securities, {
      description: 'Default: `tls`. The certificate is checked for both; there are no connections without encryption.',
    }),
  ),
  username: Type.Optional(Line(1024, 'The user of the mailbox.')),
  mailbox: Type.Optional(Line(255, 'The folder. Default: `INBOX`.')),
  from: Pattern('the sender, as in `Shop <no-reply@shop.example>`'),
  to: Pattern('a recipient, for a mailbox that gets the mails of several accounts'),
  subject: Pattern('the subject'),
  delete_after_use: Type.Optional(
    Type.Boolean({ description: 'Delete the mail whose code the site has accepted. Default: false.' }),
  ),
};

export const CodeSourceInput = named(
  'OneTimeCodeSourceRequest',
  Type.Object({
    type: oneOf(['imap', 'webhook']),
    id: Type.Optional(
      Line(64, 'In updates: the source that this entry replaces. It keeps its password, or its address.'),
    ),
    ...mailbox,
    password: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description:
          'Encrypted, and never returned. May be left out with `id` if host, port, security and username stay the same.',
      }),
    ),
    ca_bundle: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 65_536,
        description: 'PEM certificates of the server’s authority, if it is your own. Sent again with each change.',
      }),
    ),
  }),
);

export const CodeSource = named(
  'OneTimeCodeSource',
  Type.Object({
    id: Type.String(),
    type: oneOf(['imap', 'webhook']),
    ...mailbox,
    has_ca_bundle: Type.Optional(Type.Boolean()),
    webhook_url: Type.Optional(
      Type.String({
        description:
          'Only in the answer to the request that created the source. Anyone with this address can send codes, so keep it secret.',
      }),
    ),
  }),
);

export type CodeSourceInput = Static<typeof CodeSourceInput>;
export type CodeSource = Static<typeof CodeSource>;
