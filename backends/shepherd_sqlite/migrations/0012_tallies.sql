-- Health and status read a bounded number of rows, whatever is stored: an index for each state that is counted, and for
-- the item that has waited longest. Those about waiting items name a run_at, so that no claim takes them by mistake.
create index jobs_done on jobs (kind, ended_at) where status = 'done';
create index jobs_dropped on jobs (kind, ended_at) where status = 'dropped';
create index jobs_failed on jobs (kind, ended_at) where status = 'failed';
create index jobs_unhindered on jobs (kind, queued_at) where status = 'waiting' and run_at = 0;
create index jobs_put_off on jobs (kind, run_at, queued_at) where status = 'waiting' and run_at > 0;

-- Numbers over all users that take long to count, as they were a short time ago: one row, written by whoever counted.
create table tallies (
    id integer primary key check (id = 1),
    counted_at integer not null,
    took integer not null,
    numbers text not null
);
