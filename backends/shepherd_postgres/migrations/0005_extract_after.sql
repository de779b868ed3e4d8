-- A chat's news wait for more of it, or for its silence: until then the catch-up leaves the session alone.

alter table sessions add column extract_after bigint not null default 0;
