import { credentialService } from '../credentials/service.ts';
import type { Ground } from './ground.ts';

/** What logins type into pages. */
export function openCredentials({ store, secrets, events, occupancies }: Ground) {
  const credentials = credentialService({ db: store.db, secrets, events });
  occupancies.push((projectId) => credentials.occupancy(projectId));
  return credentials;
}
