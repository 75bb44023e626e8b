import { entry } from './entry.ts';

/** Credentials and their providers. */
export const credentialErrors = {
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
};
