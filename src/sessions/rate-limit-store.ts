import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

interface Bucket {
  tokens: number;
  seconds: number;
}

/** The current level of a bucket. A new bucket is full. */
const filled = (bucket: Bucket | undefined, most: number) =>
  bucket ? Math.min(most, bucket.tokens + (Math.max(0, bucket.seconds) * most) / 60) : most;

/** How many tokens a bucket has. */
export async function lookAt(db: Db, name: string, most: number): Promise<number> {
  return filled(
    await db.row<Bucket>(sql`select tokens,
        extract(epoch from clock_timestamp() - filled_at)::double precision as seconds
      from rate_buckets where name = ${name}`),
    most,
  );
}

/**
 * Takes a token out of a bucket that holds at most `most` and is refilled with as many per minute. Answers how many are left, or how many
 * there were if less than one. A clock that was set back adds nothing and becomes the new base, so that it delays no client.
 */
export function takeToken(db: Db, name: string, most: number): Promise<{ taken: boolean; tokens: number }> {
  return db.transaction(async (tx) => {
    await tx.rows(sql`insert into rate_buckets (name, tokens, filled_at) values (${name}, ${most}, clock_timestamp())
      on conflict (name) do nothing`);
    const bucket = await tx.row<Bucket>(sql`select tokens,
        extract(epoch from clock_timestamp() - filled_at)::double precision as seconds
      from rate_buckets where name = ${name} for update`);
    const tokens = filled(bucket, most);
    const left = tokens < 1 ? tokens : tokens - 1;
    await tx.rows(sql`update rate_buckets set tokens = ${left}, filled_at = clock_timestamp() where name = ${name}`);
    return { taken: tokens >= 1, tokens: left };
  });
}
