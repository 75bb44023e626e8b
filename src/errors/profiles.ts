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
    'The profile has no such version, or not any more.',
    (p: { profile: string; version: string }) =>
      `Profile '${p.profile}' has no version '${p.version}'. GET /profiles/${p.profile}/versions lists those that are kept.`,
  ),
  profile_in_use: conflict(
    'Another session saves to this profile.',
    (p: { profile: string; session: string }) =>
      `Session '${p.session}' saves to profile '${p.profile}' when it ends. End it first, leave out save_changes, or send profile.force: true to let the session that ends last win.`,
  ),
  profile_loaded: conflict(
    'The session has a profile already.',
    (p: { session: string; profile: string }) =>
      `Session '${p.session}' runs with profile '${p.profile}'; a profile is attached to a session that has none.`,
  ),
  profile_damaged: entry(
    500,
    'What is stored of the profile is not what was saved.',
    (p: { profile: string; version: string; detail: string }) =>
      `Version '${p.version}' of profile '${p.profile}' does not open: ${p.detail} Restore an earlier one (GET /profiles/${p.profile}/versions).`,
  ),
};
