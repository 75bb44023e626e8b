/** The words of the interface for connections and their flows. */

export const flowSteps = [
  'DISCOVERING',
  'AWAITING_INPUT',
  'AWAITING_EXTERNAL_ACTION',
  'SUBMITTING',
  'COMPLETED',
] as const;
export type FlowStep = (typeof flowSteps)[number];

export const flowTypes = ['LOGIN', 'REAUTH'] as const;
export const reauthReasons = [
  'external_credential',
  'cua_has_credential',
  'has_credential',
  'viable_plans_found',
  'no_requirements_recorded',
  'requirements_satisfiable',
  'no_prior_successful_login',
  'no_credential',
  'no_viable_plans',
  'viable_plans_require_external_action',
  'requires_external_action',
  'requires_totp_without_secret',
  'requires_sms_code',
  'requires_email_code',
] as const;
export type ReauthReason = (typeof reauthReasons)[number];
