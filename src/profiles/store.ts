import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { ProfileList } from './schema.ts';

export interface ProfileRow {
  id: string;
  project_id: string;
  name: string | null;
  version_id: string | null;
  created_at: Date;
  updated_at: Date;
  last_used_at: Date | null;
  last_save_error: string | null;
  last_save_error_at: Date | null;
}

interface VersionRow {
  id: string;
  session_id: string;
  /** A bigint, which arrives as text. */
  size_bytes: string;
  created_at: Date;
  current: boolean;
}

/** Every query on profiles, their versions and their archives. */
export function profileStore(db: Db) {
  return {
    /** Serialises what adds profiles to a project, until the transaction ends. */
    async lock(projectId: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral profiles of ' || ${projectId}, 0))`);
    },

    insert(id: string, projectId: string, name: string | null): Promise<ProfileRow | undefined> {
      return db.row(sql`insert into profiles (id, project_id, name) values (${id}, ${projectId}, ${name}) returning *`);
    },

    find(id: string): Promise<ProfileRow | undefined> {
      return db.row(sql`select * from profiles where id = ${id} and deleted_at is null`);
    },

    /** An id takes precedence over an equal name. */
    findByIdOrName(projectId: string, idOrName: string): Promise<ProfileRow | undefined> {
      return db.row(sql`select * from profiles
        where project_id = ${projectId} and (id = ${idOrName} or name = ${idOrName}) and deleted_at is null
        order by id = ${idOrName} desc limit 1`);
    },

    /** By a selector: an id never matches a name, and a name never matches an id. */
    findBy(projectId: string, id: string | null, name: string | null): Promise<ProfileRow | undefined> {
      return db.row(sql`select * from profiles
        where project_id = ${projectId} and (id = ${id} or name = ${name}) and deleted_at is null`);
    },

    list(projectId: string, filter: ProfileList): Promise<ProfileRow[]> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      return db.rows(sql`select * from profiles
        where project_id = ${projectId} and deleted_at is null
          and (${name}::text is null or name = ${name})
          and (${query}::text is null or strpos(lower(id), lower(${query})) > 0
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    rename(id: string, name: string): Promise<ProfileRow | undefined> {
      return db.row(sql`update profiles set name = ${name}, updated_at = now()
        where id = ${id} and deleted_at is null returning *`);
    },

    async touch(id: string): Promise<void> {
      await db.rows(sql`update profiles set last_used_at = now() where id = ${id}`);
    },

    async remove(id: string): Promise<boolean> {
      const row = await db.row(
        sql`update profiles set deleted_at = now(), version_id = null where id = ${id} and deleted_at is null returning id`,
      );
      return row !== undefined;
    },

    async count(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from profiles where project_id = ${projectId} and deleted_at is null`,
      );
      return row?.count ?? 0;
    },

    // Versions

    async beginVersion(id: string, profileId: string, sessionId: string, nodeId: string): Promise<void> {
      await db.rows(sql`insert into profile_versions (id, profile_id, session_id, node_id)
        values (${id}, ${profileId}, ${sessionId}, ${nodeId})`);
    },

    async addChunk(versionId: string, position: number, sealed: Buffer): Promise<void> {
      await db.rows(sql`insert into profile_chunks (version_id, position, sealed)
        values (${versionId}, ${position}, ${sealed})`);
    },

    async chunk(versionId: string, position: number): Promise<Buffer | undefined> {
      const row = await db.row<{ sealed: Buffer }>(
        sql`select sealed from profile_chunks where version_id = ${versionId} and position = ${position}`,
      );
      return row?.sealed;
    },

    /** Makes it the profile's version. False: the profile is deleted, or this node was declared dead and the version was removed. */
    async completeVersion(id: string, profileId: string, sizeBytes: number): Promise<boolean> {
      const profile = await db.row(sql`update profiles set version_id = ${id}, updated_at = now(),
          last_save_error = null, last_save_error_at = null
        where id = ${profileId} and deleted_at is null returning id`);
      const version =
        await db.row(sql`update profile_versions set complete = true, size_bytes = ${sizeBytes}, created_at = now()
        where id = ${id} returning id`);
      return profile !== undefined && version !== undefined;
    },

    versions(profileId: string): Promise<VersionRow[]> {
      return db.rows(sql`select v.id, v.session_id, v.size_bytes, v.created_at, v.id = p.version_id as current
        from profile_versions v join profiles p on p.id = v.profile_id
        where v.profile_id = ${profileId} and v.complete order by v.created_at desc, v.id`);
    },

    /** Makes an earlier version the current one again. */
    restore(profileId: string, versionId: string): Promise<ProfileRow | undefined> {
      return db.row(sql`update profiles p set version_id = v.id, updated_at = now() from profile_versions v
        where p.id = ${profileId} and p.deleted_at is null and v.id = ${versionId} and v.profile_id = p.id and v.complete
        returning p.*`);
    },

    /** All but the newest `keep` and the current one. */
    outdated(profileId: string, keep: number): Promise<{ id: string }[]> {
      return db.rows(sql`select id from (
          select id, row_number() over (order by created_at desc, id) as place from profile_versions
          where profile_id = ${profileId} and complete) v
        where place > ${keep} and id is distinct from (select version_id from profiles where id = ${profileId})`);
    },

    unfinishedOf(nodeId: string): Promise<{ id: string }[]> {
      return db.rows(sql`select id from profile_versions where node_id = ${nodeId} and not complete`);
    },

    async removeVersions(ids: string[]): Promise<void> {
      await db.rows(sql`delete from profile_versions where id = any (${ids})`);
    },

    async recordFailure(id: string, message: string): Promise<void> {
      await db.rows(sql`update profiles set last_save_error = ${message}, last_save_error_at = now() where id = ${id}`);
    },
  };
}
