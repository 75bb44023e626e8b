export const keyColumns = ['id', 'name', 'key', 'project', 'expires', 'state'];

interface Key {
  id: string;
  name: string;
  masked_key: string;
  project_name: string | null;
  expires_at: string | null;
  deleted_at: string | null;
}

/** A key as a row of a table. */
export function keyRow(key: Key) {
  const expired = key.expires_at !== null && Date.parse(key.expires_at) <= Date.now();
  return {
    id: key.id,
    name: key.name,
    key: key.masked_key,
    project: key.project_name ?? 'all',
    expires: key.expires_at ?? 'never',
    state: key.deleted_at ? 'revoked' : expired ? 'expired' : 'active',
  };
}
