import { conflict, entry } from './entry.ts';

/** Profiles and their versions. */
export const profileErrors = {
  profile_not_found: entry(
    404,
    'No profile has that id or name.',
    (p: { profile: string }) => `No profile is '${p.profile}'. GET /profiles lists them.`,
  ),
  profile_version_not_found: entry(
    404,
    'The profile has no such version, or the version was deleted.',
    (p: { profile: string; version: string }) =>
      `Profile '${p.profile}' has no version '${p.version}'. GET /profiles/${p.profile}/versions lists its versions.`,
  ),
  profile_limit_reached: conflict(
    'The project has its maximum of profiles.',
    (p: { most: number }) => `The project has ${p.most} profiles, which is the maximum. Delete unused profiles.`,
  ),
  profile_in_use: conflict(
    'Another session saves to this profile.',
    (p: { profile: string; session: string }) =>
      `Session '${p.session}' saves to profile '${p.profile}' when it ends. End it first, leave out save_changes, or send profile.force: true to keep the state of the session that ends last.`,
  ),
  profile_loaded: conflict(
    'The session has a profile already.',
    (p: { session: string; profile: string }) =>
      `Session '${p.session}' runs with profile '${p.profile}'. A profile can only be attached to a session without a profile.`,
  ),
  profile_damaged: entry(
    500,
    'The stored profile is damaged.',
    (p: { profile: string; version: string; detail: string }) =>
      `Version '${p.version}' of profile '${p.profile}' cannot be read: ${p.detail} Restore an earlier version (GET /profiles/${p.profile}/versions).`,
  ),
};
