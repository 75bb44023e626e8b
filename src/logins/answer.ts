import { theSite } from './flow/hosts.ts';
import { flowStates } from './flow/states.ts';
import { standardDeadlines } from './flow/types.ts';
import type { ReadChoice, ReadField } from './reading/types.ts';
import { canReauth } from './reauth.ts';
import type { RunRow } from './run-store.ts';
import type { Connection, StateEvent, TimelineEvent } from './schema.ts';
import { linkOf, type ConnectionRow } from './store.ts';
import { mostUnclear, type FlowStatus } from './state.ts';
import { flowTypes } from './api-enums.ts';

/** The addresses of a running login, for the caller. */
export interface FlowAddresses {
  hosted_url?: string;
  live_view_url?: string;
}

const nothingAsked = {
  fields: null,
  choices: null,
  discovered_fields: null,
  mfa_options: null,
  sign_in_options: null,
  pending_sso_buttons: null,
};

type Asked = Required<Pick<StateEvent, keyof typeof nothingAsked>>;

/** What the page asks for, in the canonical form and in the four older ones. */
export function askedOf(fields: readonly ReadField[], choices: readonly ReadChoice[]): Asked {
  const ofType = (...types: ReadChoice['type'][]) => choices.filter(({ type }) => types.includes(type));
  return {
    fields: fields.map(({ id, ref, type, label, required, selectors, hint, options }) => ({
      id,
      ref,
      type,
      label,
      required,
      observed_selector: selectors[0] ?? null,
      ...(hint === undefined ? {} : { hint }),
      ...(options === undefined ? {} : { options: options.map(({ label, value }) => ({ label, value })) }),
    })),
    choices: choices.map(({ id, type, label, description, selectors }) => ({
      id,
      type,
      label,
      description: description ?? null,
      observed_selector: selectors[0] ?? null,
    })),
    discovered_fields: fields.map(({ id, legacyType, label, selectors, required, placeholder, hint }) => ({
      name: id,
      type: legacyType,
      label,
      selector: selectors[0] ?? '',
      required,
      ...(placeholder === undefined ? {} : { placeholder }),
      ...(hint === undefined ? {} : { hint }),
    })),
    mfa_options: ofType('mfa_method').map(({ mfaType, label, target, description }) => ({
      type: mfaType ?? 'switch',
      label,
      target: target ?? null,
      description: description ?? null,
    })),
    sign_in_options: ofType('sign_in_method', 'auth_method', 'identifier_method', 'account', 'other').map(
      ({ id, label, description }) => ({ id, label, description: description ?? null }),
    ),
    pending_sso_buttons: ofType('sso_provider').map(({ provider, label, selectors }) => ({
      selector: selectors[0] ?? '',
      provider: provider ?? label.toLowerCase(),
      label,
    })),
  };
}

const flowTypeOf = ({ kind }: Pick<RunRow, 'kind'>) => flowTypes[kind === 'reauth' ? 1 : 0];

/** Names the question that a login waits with. Each question has another name, also when the site asks the same after a submit. */
export function interactionOf(run: Pick<RunRow, 'id' | 'revision' | 'status' | 'step'>): string | undefined {
  const { id, revision, status, step } = run;
  const waits = step === 'AWAITING_INPUT' || step === 'AWAITING_EXTERNAL_ACTION';
  return status === 'IN_PROGRESS' && waits ? `${id}.${revision}` : undefined;
}

/**
 * When the question that a login waits with ends without an answer. It may end later: a page that asks the same again after a while begins
 * a new wait, which is not reported.
 */
function inputExpiresAt(run: RunRow): string | undefined {
  if (interactionOf(run) === undefined || run.expires_at === null) return undefined;
  const state = run.step === 'AWAITING_INPUT' ? flowStates.awaiting_input : flowStates.awaiting_external;
  const reauth = run.kind === 'reauth';
  const ms = state.deadline({ deadlines: standardDeadlines, reauth, asksCode: false, captcha: false });
  return new Date(Math.min(run.updated_at.getTime() + ms, run.expires_at.getTime())).toISOString();
}

const isUnderWay = ({ status }: RunRow) => status === 'IN_PROGRESS';

export function toConnection(row: ConnectionRow, flow: RunRow | undefined, addresses: FlowAddresses): Connection {
  const { can, reason } = canReauth(row);
  const checked = row.last_auth_check_at?.toISOString();
  const credential = credentialOf(row);
  return {
    id: row.id,
    domain: row.domain,
    profile_name: row.profile_name ?? row.profile_id,
    status: row.status,
    ...(row.login_url === null ? {} : { login_url: row.login_url }),
    ...(row.post_login_url === null ? {} : { post_login_url: row.post_login_url }),
    allowed_domains: row.allowed_domains,
    confirmed_hosts: Object.keys(row.sso_hosts)
      .filter((host) => host !== theSite)
      .sort(),
    ...(credential ? { credential } : {}),
    ...(row.proxy_id === null ? {} : { proxy_id: row.proxy_id }),
    health_check_interval: row.health_check_interval,
    health_checks: row.health_checks,
    auto_reauth: row.auto_reauth,
    save_credentials: row.save_credentials,
    record_session: row.record_session,
    browser_telemetry: row.browser_telemetry ?? null,
    ...(checked === undefined ? {} : { last_auth_check_at: checked, last_auth_at: checked }),
    can_reauth: can,
    can_reauth_reason: reason,
    sso_provider: flow?.state?.ssoProvider ?? row.sso_provider,
    ...flowPart(flow, addresses),
    ...unclearPart(row, flow),
  };
}

/** After several checks that could not tell whether the profile is logged in, their reason is in the place of that of the newest login. */
function unclearPart({ status, failures, last_check }: ConnectionRow, flow: RunRow | undefined) {
  const counts = status === 'AUTHENTICATED' && failures >= mostUnclear && flow?.status !== 'IN_PROGRESS';
  if (!counts || !last_check?.message) return {};
  const { code, message } = last_check;
  return { error_code: code, error_message: `At least ${mostUnclear} checks in a row could not tell. ${message}` };
}

/** The fields of the newest login; all null before the first one. What a login asks for is null once it is over. */
function flowPart(flow: RunRow | undefined, addresses: FlowAddresses) {
  const underWay = flow !== undefined && isUnderWay(flow);
  return {
    flow_status: (flow?.status ?? null) as FlowStatus | null,
    flow_step: flow?.step ?? null,
    flow_type: flow ? flowTypeOf(flow) : null,
    flow_expires_at: (underWay && flow.expires_at?.toISOString()) || null,
    interaction_id: (flow && interactionOf(flow)) ?? null,
    input_expires_at: (flow && inputExpiresAt(flow)) ?? null,
    ...(underWay && flow.state ? askedOf(flow.state.fields, flow.state.choices) : nothingAsked),
    external_action_message: (underWay && flow.state?.externalActionMessage) || null,
    website_error: flow?.website_error ?? null,
    error_code: flow?.error_code ?? null,
    error_message: flow?.error_message ?? null,
    hosted_url: addresses.hosted_url ?? null,
    live_view_url: addresses.live_view_url ?? null,
    browser_session_id: flow?.session_id ?? null,
  };
}

export function toStateEvent(flow: RunRow, addresses: FlowAddresses, postLoginUrl: string | null): StateEvent {
  const underWay = isUnderWay(flow);
  const asked = underWay && flow.state ? askedOf(flow.state.fields, flow.state.choices) : undefined;
  const message = underWay ? flow.state?.externalActionMessage : undefined;
  const interaction = interactionOf(flow);
  const inputEnds = inputExpiresAt(flow);
  return {
    event: 'managed_auth_state',
    timestamp: flow.updated_at.toISOString(),
    flow_status: flow.status as FlowStatus,
    flow_step: flow.step ?? 'DISCOVERING',
    flow_type: flowTypeOf(flow),
    ...(interaction === undefined ? {} : { interaction_id: interaction }),
    ...(inputEnds === undefined ? {} : { input_expires_at: inputEnds }),
    ...asked,
    ...(message ? { external_action_message: message } : {}),
    ...(flow.website_error === null ? {} : { website_error: flow.website_error }),
    ...(flow.error_code === null ? {} : { error_code: flow.error_code }),
    ...(flow.error_message === null ? {} : { error_message: flow.error_message }),
    ...addresses,
    ...(flow.status === 'SUCCESS' && postLoginUrl !== null ? { post_login_url: postLoginUrl } : {}),
  };
}

export function toTimelineEvent(run: RunRow): TimelineEvent {
  return {
    id: run.id,
    type: run.kind,
    timestamp: run.started_at.toISOString(),
    status: run.status,
    ...(run.previous_status === null ? {} : { previous_status: run.previous_status }),
    ...(run.status === 'EXPIRED' ? { step: 'EXPIRED' as const } : run.step === null ? {} : { step: run.step }),
    ...(run.error_code === null ? {} : { error_code: run.error_code }),
    ...(run.error_message === null ? {} : { error_message: run.error_message }),
    ...(run.website_error === null ? {} : { website_error: run.website_error }),
    ...(run.session_id === null ? {} : { browser_session_id: run.session_id }),
    ...(run.replay_id === null ? {} : { replay_id: run.replay_id }),
    telemetry_captured: run.telemetry_captured,
    updated_at: (run.ended_at ?? run.updated_at).toISOString(),
  };
}

/** How the credential is called now. A deleted one is not shown, and nothing of a provider that is not shared with the project. */
function credentialOf(row: ConnectionRow): Connection['credential'] {
  const link = linkOf(row);
  if (!link) return undefined;
  if ('credentialId' in link) return row.credential_name === null ? undefined : { name: row.credential_name };
  if (link.providerId === null) return { auto: true };
  if (row.provider_name === null) return undefined;
  return { provider: row.provider_name, ...('path' in link ? { path: link.path } : { auto: true }) };
}
