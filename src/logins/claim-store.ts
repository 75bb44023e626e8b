import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

/** Which node checks a connection: the queries on the claims in `auth_connections`. */
export function checkClaims(db: Db) {
  return {
    /**
     * Claims a connection with a due check that no other node runs. Leaves one out while a login uses its profile, because that
     * login decides its status, and while another connection of the profile is checked, because each check may save the profile. Nodes that
     * ask at the same time get different connections. `except`: projects that have to wait.
     */
    claimDue(
      claimId: string,
      nodeId: string,
      leaseSeconds: number,
      except: readonly string[] = [],
    ): Promise<{ id: string; project_id: string } | undefined> {
      return db.row(sql`update auth_connections set claim_id = ${claimId}, claim_node = ${nodeId},
          claimed_until = now() + make_interval(secs => ${leaseSeconds}::float8)
        where id = (select c.id from auth_connections c
          join projects j on j.id = c.project_id and j.status = 'active' and j.deleted_at is null
          join profiles p on p.id = c.profile_id and p.deleted_at is null
          where c.status = 'AUTHENTICATED' and c.health_checks and c.next_check_at <= now() and c.project_id <> all (${[...except]})
            and (c.claimed_until is null or c.claimed_until < now())
            and not exists (select from auth_runs r where r.profile_id = c.profile_id and r.status = 'IN_PROGRESS')
            and not exists (select from auth_connections o
              where o.profile_id = c.profile_id and o.id <> c.id and o.claimed_until >= now())
          order by c.next_check_at limit 1 for update of c skip locked)
        returning id, project_id`);
    },

    /** False: the claim has lapsed and may be another node's. */
    async renewClaim(id: string, claimId: string, leaseSeconds: number): Promise<boolean> {
      const row =
        await db.row(sql`update auth_connections set claimed_until = now() + make_interval(secs => ${leaseSeconds}::float8)
        where id = ${id} and claim_id = ${claimId} returning id`);
      return row !== undefined;
    },

    async releaseClaim(id: string, claimId: string): Promise<void> {
      await db.rows(sql`update auth_connections set claim_id = null, claim_node = null, claimed_until = null
        where id = ${id} and claim_id = ${claimId}`);
    },

    /** Makes the checks of a lost node due at once. */
    async releaseClaimsOf(nodeId: string): Promise<void> {
      await db.rows(sql`update auth_connections set claim_id = null, claim_node = null, claimed_until = null
        where claim_node = ${nodeId}`);
    },
  };
}
