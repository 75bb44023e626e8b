import { errors } from '../../errors.ts';
import type { Invitee } from '../../lib/caller.ts';
import type { FlowTokens } from './token.ts';

export type Invitees = ReturnType<typeof invitees>;

/** What admits invitees: the token, the key that the flow was started with, and the connection's flow of now. */
export function invitees(deps: {
  pass: FlowTokens;
  /** Which of the key and the project is no longer valid; undefined while both are. */
  lapseOf: (minter: { keyId: string; projectId: string }) => Promise<'key' | 'project' | undefined>;
  /** The newest flow of a connection, running or not; undefined when the connection is deleted. */
  flowIdOf: (connectionId: string) => Promise<string | undefined>;
}) {
  const { pass, lapseOf, flowIdOf } = deps;
  return {
    isOne: pass.looksLikeOne,

    async admit(token: string, { id = '' }: { id?: string }): Promise<Invitee> {
      const flow = pass.open(id, token);
      const lapse = await lapseOf(flow);
      if (lapse)
        throw errors.unauthorized({ detail: `This login was started with a ${lapse} that has ended. Start it again.` });
      if ((await flowIdOf(id)) !== flow.flowId)
        throw errors.unauthorized({ detail: 'This login is over: the connection has another one, or is deleted.' });
      return flow;
    },
  };
}

/** What the holder of a key configured, and where the browser is. An invitee needs none of it to log in. */
const notForInvitees = [
  'hosted_url', // it has a code that lets another person in
  'credential',
  'proxy_id',
  'allowed_domains',
  'confirmed_hosts',
  'browser_telemetry',
  'browser_session_id',
] as const;

/** The connection as an invitee sees it. */
export function forInvitee<T extends object>(connection: T): T {
  const hidden: readonly string[] = notForInvitees;
  return Object.fromEntries(Object.entries(connection).filter(([name]) => !hidden.includes(name))) as T;
}
