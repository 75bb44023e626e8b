import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { toStateEvent } from './answer.ts';
import type { Asking, Finding } from './connection-lookup.ts';
import type { FlowTokens } from './hosted/token.ts';
import type { LoginInputs } from './inputs.ts';
import type { Notices } from './notices.ts';
import { ends } from './login-ends.ts';
import { runStore } from './run-store.ts';
import { flowSeconds, type NodeLogins } from './node-logins.ts';
import { refuseTelemetry } from '../sessions/request.ts';
import type { LoginStarted, StartLogin, StateEvent, SubmitFields } from './schema.ts';
import { connectionStore } from './store.ts';

/** Notifications can be missed, so a reader of events looks by itself too. */
const lookMs = 5000;

export interface RequestOptions {
  db: Db;
  runner: Pick<NodeLogins, 'begin' | 'settle'>;
  inputs: LoginInputs;
  notices: Notices;
  tokens: FlowTokens;
  nodeId: string;
  finding: Finding;
  /** The id of the proxy that a request names. */
  proxyId: (projectId: string, named: { id?: string; name?: string }) => Promise<string>;
}

/** Logins as clients see them: started, answered, followed. */
export function loginRequests(options: RequestOptions) {
  const { db, runner, inputs, notices, tokens, nodeId, proxyId } = options;
  const { find, addressesOf, newestFlow, flowFor, runningFlow } = options.finding;
  const store = connectionStore(db);
  const runs = runStore(db);
  let closing = false;

  return {
    async login(asking: Asking, id: string, request: StartLogin): Promise<LoginStarted> {
      const { projectId, keyId } = asking;
      const connection = await find(projectId, id);
      refuseTelemetry(request.browser_telemetry);
      const proxy = request.proxy ? await proxyId(projectId, request.proxy) : connection.proxy_id;
      const { run, over } = await runner.begin({
        connection,
        kind: 'login',
        keyId,
        proxyId: proxy,
        telemetry: request.browser_telemetry === undefined ? connection.browser_telemetry : request.browser_telemetry,
        record: request.record_session ?? connection.record_session,
      });
      void over;
      const flow = { ...run, status: 'IN_PROGRESS' as const };
      const expiresAt = run.expires_at ?? new Date(Date.now() + flowSeconds * 1000);
      const { hosted_url = '', live_view_url } = await addressesOf(flow, asking);
      return {
        id,
        flow_type: 'LOGIN',
        hosted_url,
        flow_expires_at: expiresAt.toISOString(),
        handoff_code: tokens.code({ connectionId: id, flowId: run.id, projectId, keyId }, expiresAt),
        ...(live_view_url === undefined ? {} : { live_view_url }),
      };
    },

    async submit(asking: Asking, id: string, request: SubmitFields): Promise<void> {
      await find(asking.projectId, id);
      const flow = await runningFlow(id, asking);
      if (asking.flowId !== undefined) await runs.attend(flow.id);
      await inputs.submit(flow.id, id, request);
    },

    async pushCode(asking: Asking, id: string, code: string): Promise<void> {
      await find(asking.projectId, id);
      await inputs.pushCode((await runningFlow(id, asking)).id, id, code);
    },

    /** Ends the running login. The node of its browser is notified, and ends the browser without saving the profile. */
    async cancel(asking: Asking, id: string): Promise<void> {
      await find(asking.projectId, id);
      const flow = await runningFlow(id, asking);
      if (!(await runner.settle(flow.id, ends.canceled))) throw errors.no_active_flow({ connection: id });
    },

    /** Trades a code for the token of its flow, once. It needs no key: the code is the permission. */
    async exchange(id: string, code: string): Promise<{ invocation_id: string; jwt: string }> {
      const opened = tokens.openCode(id, code);
      if (!opened) throw errors.handoff_code_gone({});
      const { codeId, ...ref } = opened;
      const { flowId, projectId } = ref;
      const row = await store.find(projectId, id);
      if (!row) throw errors.connection_not_found({ connection: id });
      const flow = await newestFlow(id);
      const fresh = flow?.id === flowId && flow.expires_at !== null && (await runs.useCode(flowId, codeId));
      if (!fresh) throw errors.handoff_code_gone({});
      await runs.attend(flowId);
      return { invocation_id: flowId, jwt: tokens.token(ref, flow.expires_at!) };
    },

    /** The newest login of a connection, running or not; undefined when there is none. */
    flowIdOf: async (id: string): Promise<string | undefined> => (await newestFlow(id))?.id,

    /**
     * The states of the newest login, one after the other, until it is over. Without a login it waits for one. Ends without a state
     * when the connection is deleted, or the service stops.
     */
    async *follow(asking: Asking, id: string, signal: AbortSignal): AsyncGenerator<StateEvent> {
      await find(asking.projectId, id);
      let seen = '';
      let attended = 0;
      while (!signal.aborted) {
        const heard = notices.next(id, signal, lookMs); // before looking, so that none is missed between
        try {
          const row = await store.find(asking.projectId, id);
          if (!row) return;
          const flow = await flowFor(id, asking);
          const version = flow ? `${flow.id} ${flow.revision}` : '';
          if (asking.flowId !== undefined && flow && Date.now() - attended > 10_000) {
            attended = Date.now();
            await runs.attend(flow.id);
          }
          if (flow && version !== seen) {
            seen = version;
            yield toStateEvent(flow, await addressesOf(flow, asking), row.post_login_url);
            if (flow.status !== 'IN_PROGRESS') return;
          }
          // A login of this node ends with the service, and its reader gets the outcome.
          if (closing && !(flow?.status === 'IN_PROGRESS' && flow.node_id === nodeId)) return;
          await heard.promise;
        } finally {
          heard.stop();
        }
      }
    },

    /** The service stops: the streams of states are ended. */
    close() {
      closing = true;
      notices.gap();
    },
  };
}
