import { randomBytes } from 'node:crypto';
import { errors } from '../../errors.ts';
import type { Claims, Tokens } from '../../lib/tokens.ts';

/** The flow that a code or a token is for. */
interface FlowRef {
  connectionId: string;
  flowId: string;
  projectId: string;
  /** The key that the flow was started with. Codes and tokens are valid for as long as it is. */
  keyId: string;
}

/** Make the `Tokens` of this room with this purpose, so that a session's token counts as forged here, and the other way round. */
export const flowTokenPurpose = 'login flow tokens';

/** The outcome can be read for this long after the flow's time: a page that lost its connection must not miss it. */
export const outcomeSeconds = 10 * 60;

type Use = 'handoff' | 'flow';

export type FlowTokens = ReturnType<typeof flowTokens>;

/**
 * What lets a person without a key take part in one flow. A code is in an address (`hosted_url`) or passed on by a
 * program (`handoff_code`), and is good for one exchange. The token it is exchanged for is never part of an address: it is
 * sent in the Authorization header, reads one connection's state and events, and submits to one flow.
 *
 * Both name their flow. They end with it: as soon as the connection has another flow or is deleted they admit to nothing,
 * and when the flow has ended the token only reads its outcome.
 */
export function flowTokens(tokens: Tokens) {
  const sign = (use: Use, { connectionId, flowId, projectId, keyId }: FlowRef, endsAt: Date, more = {}) =>
    tokens.sign({
      sub: connectionId,
      aud: use,
      exp: Math.ceil(endsAt.getTime() / 1000),
      flow: flowId,
      project: projectId,
      key: keyId,
      ...more,
    });

  function read(given: string, use: Use, connectionId: string): (FlowRef & { claims: Claims }) | undefined {
    const claims = tokens.verify(given);
    if (typeof claims === 'string' || claims.aud !== use || claims.sub !== connectionId) return undefined;
    const { flow: flowId, project: projectId, key: keyId } = claims;
    if (typeof flowId !== 'string' || typeof projectId !== 'string' || typeof keyId !== 'string') return undefined;
    return { connectionId, flowId, projectId, keyId, claims };
  }

  return {
    /** A new code of a flow, valid until `expiresAt` (the flow's). Each code is different, also of the same flow. */
    code: (flow: FlowRef, expiresAt: Date): string =>
      sign('handoff', flow, expiresAt, { jti: randomBytes(12).toString('base64url') }),

    /**
     * The flow of a code, or undefined if the code is not valid for this connection. `codeId` is what the flow remembers as
     * used: a code with a remembered id was exchanged before.
     */
    openCode(connectionId: string, code: string): (FlowRef & { codeId: string }) | undefined {
      const opened = read(code, 'handoff', connectionId);
      const codeId = opened?.claims['jti'];
      if (!opened || typeof codeId !== 'string') return undefined;
      const { claims: _, ...flow } = opened;
      return { ...flow, codeId };
    },

    /** The token that a code is exchanged for. */
    token: (flow: FlowRef, expiresAt: Date): string =>
      sign('flow', flow, new Date(expiresAt.getTime() + outcomeSeconds * 1000)),

    /** Whether an Authorization header carries a token of this form rather than a key, which has no dots. */
    looksLikeOne: (given: string): boolean => given.split('.').length === 3,

    /** The flow that a token is for. The caller still has to see that it is the connection's flow of now. */
    open(connectionId: string, given: string): FlowRef {
      const opened = read(given, 'flow', connectionId);
      if (!opened)
        throw errors.unauthorized({
          detail: 'This token has expired or is not for this connection. Start the login again for a new link.',
        });
      const { claims: _, ...flow } = opened;
      return flow;
    },
  };
}

/** The address of the page for a flow. `publicUrl` has no slash at its end. */
export const hostedUrl = (publicUrl: string, connectionId: string, code: string): string =>
  `${publicUrl}/auth/hosted/${encodeURIComponent(connectionId)}?code=${code}`;
