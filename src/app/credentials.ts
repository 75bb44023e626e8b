import { directRequests } from '../chromium/egress/direct-request.ts';
import { credentialLookup } from '../credentials/lookup.ts';
import { providerService } from '../credentials/providers/service.ts';
import { credentialService } from '../credentials/service.ts';
import { orgStore } from '../org/store.ts';
import { version } from '../version.ts';
import type { Egress } from './egress.ts';
import type { Ground } from './ground.ts';

/** What logins type into pages, here and in stores elsewhere. */
export function openCredentials({ store, secrets, events, log }: Ground, { allow, refuseHost }: Egress) {
  const room = { db: store.db, secrets, events };
  const credentials = credentialService(room);
  const request = directRequests({ allow });
  const projects = orgStore(store.db);
  const projectId = async (idOrName: string) => (await projects.findProjectByIdOrName(idOrName))?.id;
  const providers = providerService({ ...room, projectId, refuseHost, request, version, log });
  return { credentials, providers, lookup: credentialLookup({ credentials, providers, log }) };
}
