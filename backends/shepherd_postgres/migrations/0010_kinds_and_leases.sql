-- Jobs by kind: of one that is exclusive, no two of the same key run at once, and this index is the fence.
alter table jobs add column is_exclusive bigint not null default 0;
create unique index jobs_exclusive on jobs (user_id, kind, key) where status = 'running' and is_exclusive = 1;

-- A kind with limits has a row that is changed by every claim: claims of it are made one after the other.
create table job_kinds (
    kind text collate "C" primary key,
    claims bigint not null
);

-- What runs is looked at by its kind, whatever its lease: a process that is gone holds nothing.
create index jobs_running on jobs (kind) where status = 'running';
drop index jobs_leased;

-- An entry is embedded by one process at a time: by whose token, and until when it may.
alter table unembedded add column token text collate "C" not null default '';
alter table unembedded add column lease_until bigint not null default 0;
create index unembedded_leased on unembedded (token) where token <> '';
