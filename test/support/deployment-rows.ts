import type { NewDeployment } from '../../src/deployments/store.ts';

/** A row of a deployment of a zip, for which nothing else was asked. */
export const newDeployment = (changes: Partial<NewDeployment> & { id: string }): NewDeployment => ({
  project_id: 'proj',
  version: 'latest',
  region: 'local.zone-a',
  force: false,
  entrypoint: 'index.js',
  env_names: [],
  source_type: 'file',
  source_url: null,
  source_ref: null,
  source_path: null,
  source_checksum: null,
  source_bytes: 0,
  ...changes,
});
