import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type, type Static } from 'typebox';
import { errors } from '../errors.ts';
import { callerOf } from './caller.ts';
import { named, nullable, Timestamp } from './schema.ts';

const Versions = Type.Object({
  corral: Type.String(),
  node: Type.String(),
  chromium: nullable(Type.String({ description: 'Of the full browser; null if it is not installed.' })),
  headless_shell: nullable(
    Type.String({ description: 'null if it is not installed: headless sessions use the full browser.' }),
  ),
  postgresql: Type.String(),
});
const Setting = Type.Object({
  name: Type.String({ description: 'The environment variable.' }),
  value: nullable(
    Type.String({
      description:
        'The effective value on this node, including defaults and detected values. null for a secret that is set. Users, passwords and queries of addresses are `***`.',
    }),
  ),
  default: Type.String(),
  is_default: Type.Boolean(),
  redacted: Type.Boolean({ description: 'Whether a part of the value is hidden.' }),
  meaning: Type.String(),
});
const Finding = Type.Object({
  name: Type.String(),
  well: Type.Boolean(),
  saw: Type.String({ description: 'The result of the check.' }),
  required: Type.Optional(Type.Boolean({ description: 'For a failed check: whether no browser can run without it.' })),
  switched_off: Type.Optional(Type.String({ description: 'The features that are disabled without it.' })),
});
const EventLoop = Type.Object(
  {
    longest_stop_ms: Type.Number({ description: 'In the last hour.' }),
    longest_stop_since_start_ms: Type.Number(),
    longest_stop_at: nullable(Timestamp),
  },
  {
    description:
      'How long the event loop of the service was blocked. The service answers no request of any project during a stop. Stops below 20 ms are not counted.',
  },
);
const About = named(
  'About',
  Type.Object({
    node_id: Type.String({ description: 'The node that answers. The other fields describe it.' }),
    public_url: Type.String(),
    versions: Versions,
    event_loop: EventLoop,
    settings: Type.Array(Setting),
    doctor: Type.Object(
      {
        checked_at: Timestamp,
        findings: Type.Array(Finding),
        mends: Type.Array(Type.String(), { description: 'The remedies for failed checks.' }),
        failure: nullable(Type.String({ description: 'The reason if there are no findings.' })),
      },
      {
        description: 'The findings of `corral doctor` on the machine of the node. The check runs at most every 30 s.',
      },
    ),
  }),
);

/** For operators: versions, settings and machine of the node that answers. */
export function aboutRoutes({ about }: { about: () => Promise<Static<typeof About>> }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/about',
      {
        config: { access: 'org' },
        schema: {
          operationId: 'getAbout',
          summary:
            'Versions, effective settings without secrets, and missing parts of the machine. Takes an organisation-wide key.',
          tags: ['status'],
          response: { 200: About },
        },
      },
      async (request) => {
        if (callerOf(request).projectId !== null)
          throw errors.forbidden({
            detail: 'This key is for one project; settings and versions are those of the whole service.',
          });
        return about();
      },
    );
  };
}
