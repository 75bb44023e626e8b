import { lifecycle } from '../lib/lifecycle.ts';

export const connectionLife = lifecycle(
  {
    NEEDS_AUTH: 'The profile is not logged in, or is no longer.',
    AUTHENTICATED: 'The last login or check found the profile logged in.',
  },
  {
    logged_in: { from: ['NEEDS_AUTH', 'AUTHENTICATED'], to: 'AUTHENTICATED' },
    logged_out: { from: ['NEEDS_AUTH', 'AUTHENTICATED'], to: 'NEEDS_AUTH' },
  },
);

/** No login lasts for ever: it expires after 20 minutes, and ends with its node. */
export const loginLife = lifecycle(
  {
    IN_PROGRESS: 'The login is under way; flow_step says where.',
    SUCCESS: 'The profile is logged in and saved.',
    FAILED: 'The profile is not logged in; error_code says why.',
    EXPIRED: 'It took longer than 20 minutes.',
    CANCELED: 'A client canceled it.',
  },
  {
    succeeded: { from: ['IN_PROGRESS'], to: 'SUCCESS' },
    failed: { from: ['IN_PROGRESS'], to: 'FAILED' },
    expired: { from: ['IN_PROGRESS'], to: 'EXPIRED' },
    canceled: { from: ['IN_PROGRESS'], to: 'CANCELED' },
  },
);

/** Checks in a row that cannot tell whether the profile is logged in, before the connection says so and a login is tried. */
export const mostUnclear = 3;

export type ConnectionStatus = keyof typeof connectionLife.states;
export type ConnectionEvent = keyof typeof connectionLife.events;
export type FlowStatus = keyof typeof loginLife.states;
