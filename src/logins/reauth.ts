import type { Requirements } from './flow/recipe.ts';
import { namesFor } from './flow/values.ts';
import { linkOf, type ConnectionRow } from './store.ts';
import type { ReauthReason } from './api-enums.ts';

type Facts = Pick<
  ConnectionRow,
  | 'credential_kind'
  | 'credential_id'
  | 'provider_id'
  | 'provider_path'
  | 'value_keys'
  | 'has_totp_secret'
  | 'code_sources'
  | 'requirements'
  | 'fills'
  | 'takes_codes'
  | 'has_passkeys'
  | 'last_login_at'
>;

/**
 * Whether the service can log in again without a person: the needs of the last login, compared with the values available now. What a
 * provider holds is known only when it is asked, so a login that it may not have everything for is tried.
 */
export function canReauth(row: Facts): { can: boolean; reason: ReauthReason } {
  const no = (reason: ReauthReason) => ({ can: false, reason });
  const yes = (reason: ReauthReason) => ({ can: true, reason });
  if (row.last_login_at === null) return no('no_prior_successful_login');
  const link = linkOf(row as ConnectionRow);
  const needs = row.requirements;
  const stored = link !== undefined && 'credentialId' in link;
  const asksNothing = needs !== null && needs.keys.length === 0 && !needs.totp && !needs.basic;
  const byPasskey = needs?.passkey === true && row.has_passkeys;
  if (!link && !asksNothing && !byPasskey) return no('no_credential');
  if (needs?.external) return no('requires_external_action');
  const codes = row.takes_codes ? [] : (needs?.codes ?? []);
  const missing = codes.filter((way) => !hasSource(row.code_sources ?? [], way));
  // Where the page does not say how its code comes, a login types a generated one.
  const generated = needs?.totp === true || missing.includes('other');
  const sent = missing.filter((way) => way !== 'other');
  if (sent.length > 0) return no(sent.includes('email') ? 'requires_email_code' : 'requires_sms_code');
  if (generated && stored && !row.has_totp_secret && !row.takes_codes) return no('requires_totp_without_secret');
  if (needs?.passkey && !row.has_passkeys) return no('requires_external_action');
  if (needs && stored && lacks(row, needs.keys)) return no('no_viable_plans');
  if (!link) return yes('viable_plans_found');
  if (!stored) return yes('external_credential');
  return yes(needs ? 'requirements_satisfiable' : 'no_requirements_recorded');
}

/** Whether a source of the credential may have the codes of a way. Programs forward mails and text messages, and no calls. */
function hasSource(sources: readonly string[], way: Requirements['codes'][number]): boolean {
  return way !== 'call' && (sources.includes('webhook') || (way !== 'sms' && sources.includes('imap')));
}

/** Whether the credential has no value for something that was typed, neither by a usual name for it nor by the page's own. */
function lacks({ fills, value_keys }: Facts, needed: readonly string[]): boolean {
  // Made once: it reads each name of the credential, and a recipe may have hundreds of fills.
  const isThere = namesFor(value_keys ?? []);
  const isTyped = (needed: string) =>
    (fills ?? []).some(({ key, label }) => key === needed && label !== '' && isThere(label));
  return needed.some((key) => !isThere(key) && !isTyped(key));
}
