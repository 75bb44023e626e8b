import { directRequests } from '../chromium/egress/direct-request.ts';
import { imapMailboxes } from '../credentials/codes/mailbox.ts';
import { codeSourceService } from '../credentials/codes/service.ts';
import { credentialLookup } from '../credentials/lookup.ts';
import { providerService } from '../credentials/providers/service.ts';
import { credentialService } from '../credentials/service.ts';
import { orgStore } from '../org/store.ts';
import { version } from '../version.ts';
import type { Egress } from './egress.ts';
import type { Ground } from './ground.ts';

/** How often posted codes that no login took are removed. */
const tidyMs = 60_000;

/** What logins type into pages, here and in stores elsewhere. */
export function openCredentials(
  { store, secrets, events, opened, log }: Ground,
  { allow, refuseHost }: Egress,
  publicUrl: () => string,
) {
  const room = { db: store.db, secrets, events, refuseHost };
  const credentials = credentialService({ ...room, publicUrl });
  const codeSources = codeSourceService({ ...room, mailboxes: imapMailboxes(allow), log });
  const tidying = setInterval(() => {
    codeSources.tidy().catch((error: Error) => log.warn({ error: error.message }, 'one_time_codes.not_pruned'));
  }, tidyMs);
  opened(() => clearInterval(tidying));
  const request = directRequests({ allow });
  const projects = orgStore(store.db);
  const projectId = async (idOrName: string) => (await projects.findProjectByIdOrName(idOrName))?.id;
  const providers = providerService({ ...room, projectId, request, version, log });
  return { credentials, codeSources, providers, lookup: credentialLookup({ credentials, providers, log }) };
}
