-- What is left of a rate limit that all nodes share. The database's clock is the one that they have in common.
create table rate_buckets (
  name      text primary key,
  tokens    double precision not null,
  filled_at timestamptz not null
);
