import { entry } from './entry.ts';

/** Credentials and their providers. */
export const credentialErrors = {
  provider_host_refused: entry(
    400,
    'The credential provider is at an address that the service may not connect to.',
    (p: { host: string; remedy: string }) =>
      `server_url: ${p.host} is on a private network, this machine or another address that is not public. ${p.remedy}`.trim(),
  ),
  code_source_host_refused: entry(
    400,
    'A source of one-time codes is at an address that the service may not connect to.',
    (p: { host: string; remedy: string }) =>
      `one_time_code_sources: ${p.host} is on a private network, this machine or another address that is not public. ${p.remedy}`.trim(),
  ),
  credential_not_found: entry(
    404,
    'No credential of the project has that id or name.',
    (p: { credential: string }) => `No credential is '${p.credential}'. GET /credentials lists them.`,
  ),
  no_totp_secret: entry(
    404,
    'The credential has no TOTP secret to make a code from.',
    (p: { credential: string }) =>
      `Credential '${p.credential}' has no TOTP secret. Send totp_secret with PATCH /credentials/{id_or_name}.`,
  ),
  provider_not_found: entry(
    404,
    'No credential provider has that id, or it is not shared with the project.',
    (p: { provider: string }) => `No credential provider is '${p.provider}'. GET /org/credential_providers lists them.`,
  ),
  provider_item_not_found: entry(404, 'The credential provider has no such item.', (p: { detail: string }) => p.detail),
  item_not_for_site: entry(
    400,
    'The item of the credential provider does not name the site, so it is not typed there.',
    (p: { item: string; provider: string; site: string }) =>
      `The item ${p.item} of credential provider '${p.provider}' does not name ${p.site}, and is typed only at sites that it names. Add ${p.site} to the sites of the item.`,
  ),
  provider_refused: entry(
    422,
    'The store behind the credential provider refuses the token, or the provider is disabled.',
    (p: { provider: string; detail: string }) => `Credential provider '${p.provider}' refused: ${p.detail}`,
  ),
  provider_unavailable: entry(
    502,
    'The store behind the credential provider cannot be reached or sent an unexpected answer; `details` has the code of the reason.',
    (p: { provider: string; detail: string }) => `Credential provider '${p.provider}' cannot be used: ${p.detail}`,
  ),
};
