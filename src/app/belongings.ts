import { join } from 'node:path';
import { decompress } from '../chromium/browser/profile-archive.ts';
import { extensionService } from '../extensions/service.ts';
import { uploads } from '../uploads/uploads.ts';
import { profileMetrics } from '../profiles/metrics.ts';
import { profileService } from '../profiles/service.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';

/** Profiles and extensions, which sessions are made with. */
export async function openBelongings(
  { config, store, secrets, events, metrics, disk, log }: Ground,
  org: Organisation,
) {
  const { db, quick, nodeId } = store;
  const { storage } = org;
  const profiles = profileService({
    db,
    quick,
    secrets,
    events,
    metrics: profileMetrics(metrics),
    nodeId,
    disk: config.databaseUrl === '' ? disk : undefined,
    storage,
    decompress,
    log,
  });
  await profiles.start();
  const incoming = uploads(join(config.dataDir, 'uploads'), disk);
  await incoming.sweep();
  const extensions = extensionService({ db, uploads: incoming, storage, storeUrl: config.chromeStoreUrl });
  return { profiles, extensions };
}
