-- Whether what is claimed can be made again, as a cache can: it gives way to what cannot.
alter table storage_claims add column made_again boolean not null default false;
